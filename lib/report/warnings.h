/* What a run did that cost it time and need not be, each with what to do about it. */
#pragma once

#include "report/findings.h"
#include "report/profiles.h"
#include "report/run.h"

/* What the run `at` does again and again, and what it does to other ranks: found in the log's other
 * runs too. Adds a warning for each: "ptx-jit", "squashed", "rank". `profiles` says why guesses
 * were undone. */
void warnings_find_habits(const struct run_log *log, size_t at, const struct profiles *profiles,
	struct findings *findings);

/* Under which conditions it ran: "eager-loading", "connections", "jit-cache", "visible-gpus". */
void warnings_find_conditions(const struct run *run, struct findings *findings);

/* Did it wait for a cold cuInit so long that the machine's settings are worth a look? */
bool warnings_is_init_dear(const struct run *run);
