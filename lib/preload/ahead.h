/* The speculative thread's work, from opening the driver to giving back what nobody asked for. */
#pragma once

#include "profile/decide.h"

/* What it is to do; must stay. */
struct ahead_plan {
	const struct situation *situation;
	const struct start_decision *decision;
	int rank; /* the launcher's, read where the program could read it */
};

/* Takes a struct ahead_plan; for threads_start. */
void *ahead_run(void *plan);
