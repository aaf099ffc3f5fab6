/* Programs that start another program: what they do to its environment, and where in their words it
 * begins. One table. */
#pragma once

#include <stddef.h>

enum wrapper_kind {
	WRAPPER_PASSES,   /* the environment passes through */
	WRAPPER_ENV,      /* env(1): changes it */
	WRAPPER_LOADER,   /* ld.so called as a program */
	WRAPPER_HEARTH,   /* `hearth run`: adds libhearth.so again */
	WRAPPER_LOSES,    /* LD_PRELOAD does not get through: sudo and the like */
	WRAPPER_AWAY,     /* the program runs in another root or on another machine */
	WRAPPER_LAUNCHER, /* starts it with options of its own; its environment passes */
	WRAPPER_SWITCH,   /* su: likewise, unless it starts a login shell */
	WRAPPER_TOOL,     /* a debugger or profiler that injects itself */
	WRAPPER_SHELL,    /* runs text */
};

struct wrapper {
	const char *name;
	enum wrapper_kind kind;
	const char *with_value;             /* short options that take a value in the next word */
	const char *const *long_with_value; /* long ones likewise, NULL at the end; or NULL */
	unsigned operands; /* words that come before the program: a duration, a mask */
};

/* The wrapper that a program of this base name is, or NULL. */
const struct wrapper *wrapper_find(const char *base_name);

/* Where the wrapped program stands in the words, options and operands skipped; 0 where none does.
 */
size_t wrapper_skip(const struct wrapper *wrapper, char *const *words);
