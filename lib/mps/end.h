/* Ending a client so that its siblings go on. */
#pragma once

#include "mps/control.h"

#include <sys/types.h>

enum end_way { END_TERMINATED, END_KILLED };

/* The server gives up what the client has on the GPU (terminate_client); where the process is still
 * there after `patience_us` it is killed, which a client that still has work on the GPU must not be
 * (MPS documentation, "Client early termination"). 0 with the way; -ESRCH where no server has such
 * a client; -EPERM; -ETIMEDOUT where it does not even end by SIGKILL; as control_run. */
int end_client(
	const struct control *control, pid_t client, uint64_t patience_us, enum end_way *ret_way);
