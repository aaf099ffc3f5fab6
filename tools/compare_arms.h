/* The two arms of `hearth compare`, run by run. */
#pragma once

#include "base/settings.h"
#include "launch/child.h"
#include "region/address.h"
#include "report/compare.h"

#include <limits.h>

struct arms {
	struct settings settings;    /* where our broker is */
	struct address address;      /* likewise, as it answered */
	char library[PATH_MAX];      /* libhearth.so */
	char device[PATH_MAX];       /* whose holders keep the GPU warm */
	char log[PATH_MAX];          /* HEARTH_LOG of every run */
	int output;                  /* the program's stdout */
	int errors;                  /* and stderr, readable */
	const char *users_speculate; /* HEARTH_SPECULATE and HEARTH_CTX, or NULL */
	const char *users_ctx;
	char **words;
	bool is_quiet; /* no progress on stderr */
	bool is_released;
	struct comparison *comparison;
};

/* Finds the library, starts a broker and waits for its keeper; opens what the runs need. Says on
 * stderr what is wrong. COMMAND_OK or COMMAND_FAILED. */
int arms_open(const char *keep_output, char **words, struct comparison *comparison,
	struct arms *ret_arms);

/* One run that is not counted, then `rounds` times a native one and one with Hearth. */
int arms_run(struct arms *arms, unsigned rounds);

/* Gives the keeper back what it held, and removes our files. */
void arms_close(struct arms *arms);
