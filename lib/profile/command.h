/* What a command line says about the program, for identity.c. */
#pragma once

#include "profile/identity.h"

struct command {
	enum identity_kind kind; /* a child and a notebook are recognised as such */
	const char *what;        /* path, module or text; never NULL */
	const char *role;        /* of a child: "spawn", "forkserver", "loky", "ray"; else NULL */
	const char *role_name;   /* of a child: what its parent calls it, numbers and all; or "" */
	const char *interpreter; /* base name, or "" for an executable */
	int arguments;           /* index in argv of the first one that is the program's own */
	char option_letters[32]; /* the interpreter's own options, each once: "uB" */
};

/* Takes the command line apart. Points into it. */
void command_read(const struct identity_source *source, struct command *ret_command);

/* Feeds which options are present among argv[first...]: names without values, sorted, each once. */
void command_shape(int argc, const char *const *argv, int first, struct digest_state *state);
