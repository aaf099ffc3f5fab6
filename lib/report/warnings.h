/* What a run did that cost it time and need not be, each with what to do about it. */
#pragma once

#include "report/profiles.h"
#include "report/run.h"

#include <stdio.h>

/* Looks at the run `at` and at the log's other runs of its program, and prints one line for each
 * warning and one for its remedy; nothing where there is none. `profiles` says why guesses were
 * undone. */
void warnings_print(
	const struct run_log *log, size_t at, const struct profiles *profiles, FILE *to);
