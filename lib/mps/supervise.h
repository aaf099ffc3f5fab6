/* The process that keeps a daemon: starts it, has its server started ahead, starts both again with
 * back-off when they end, and takes everything away at the end. SIGTERM ends it; it is told apart
 * by the place's lock, which it holds for life. Where it is killed the daemon goes on, and so do
 * its clients: the next supervisor takes it over. */
#pragma once

#include "mps/control.h"
#include "mps/place.h"

struct supervise_plan {
	const struct place *place;
	struct control control;
	int report_fd; /* gets "r" once the server is active, or words; closed then */
};

/* Leaves the supervisor behind: a process of its own session, nobody's child. 0 or -errno of fork.
 */
int supervise_start(const struct supervise_plan *plan);
