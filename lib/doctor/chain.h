/* The state of a command that is followed step by step: the words left, and the environment that
 * the next program would get. */
#pragma once

#include "doctor/scene.h"
#include "report/findings.h"

#include <linux/limits.h>

struct chain {
	struct scene scene; /* its env is what the next program gets */
	struct findings *findings;
	char **words;        /* NULL at the end */
	char path[PATH_MAX]; /* the program that words[0] leads to */
	/* Why the preload did not get this far; id NULL while it did. */
	const char *lost_id;
	char *lost_text;
	const char *lost_remedy;
	/* Everything allocated while walking, freed at the end. */
	void **owned;
	size_t owned_count;
	bool is_short; /* memory ran out */
};

enum chain_step {
	CHAIN_ON,      /* words and path have moved on */
	CHAIN_END,     /* path is the program that counts */
	CHAIN_INHERIT, /* what path starts counts, and gets the environment; which it is isn't known
			*/
	CHAIN_STOP,    /* nothing more can be said, or there is nothing to run: findings say why */
};

int chain_init(const struct scene *scene, char *const *words, struct findings *findings,
	struct chain *ret_chain);
void chain_done(struct chain *chain);

/* Finds the program for words[0] and looks at its file: a script leads to its interpreter, a
 * wrapper to what it wraps. */
enum chain_step chain_step(struct chain *chain);

/* `hearth run`: libhearth.so is preloaded from here on. */
void chain_add_library(struct chain *chain);

/* Memory that lives as long as the chain; NULL sets is_short. */
void *chain_keep(struct chain *chain, void *memory);
__attribute__((format(printf, 4, 5))) void chain_lose(
	struct chain *chain, const char *id, const char *remedy, const char *format, ...);
