/* Putting a program under Hearth: our library found, checked, and added to LD_PRELOAD. */
#pragma once

#include <limits.h>
#include <stddef.h>

struct wrap_error {
	char text[PATH_MAX + 200]; /* one line for people, naming the bad value */
};

/* Finds libhearth.so and checks that the loader can take it, so that it does not print a line for
 * every program instead. 0, or a negative errno with the reason in ret_error. */
int wrap_find_library(size_t size, char *ret_path, struct wrap_error *ret_error);

/* Sets LD_PRELOAD in our own environment, for the program to inherit. As above. */
int wrap_set_preload(const char *library, struct wrap_error *ret_error);

/* Asks for speculation without a profile, in the program that this very process execs and in no
 * other (HEARTH_SPECULATE=always:PID). 0 or a negative errno. */
int wrap_set_eager(void);
