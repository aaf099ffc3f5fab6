/* Asking another program with a deadline. */
#pragma once

#include <stddef.h>

/* Runs the program (absolute path, NULL-terminated words) with stdin and stderr on /dev/null and
 * without LD_PRELOAD, and takes the first size - 1 bytes of its output, with a NUL behind them.
 * Returns 0; 1 where it failed; -ETIME where it was not done in time (it is killed); or a negative
 * errno. */
int inquire(const char *const *words, int timeout_ms, char *ret_text, size_t size);
