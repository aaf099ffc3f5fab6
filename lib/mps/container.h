/* What a container needs so that its programs are clients of the host's daemon: the pipe folder,
 * the variable that names it, the host's IPC namespace, and the daemon's user. */
#pragma once

#include "mps/place.h"

#include <stdio.h>
#include <sys/types.h>

enum container_form { CONTAINER_DOCKER, CONTAINER_COMPOSE, CONTAINER_SHELL };

/* Prints options for `docker run`, one on a line; a part of a compose file's service; or, for a
 * shell beside the daemon, what it evaluates. `uid` and `gid`: whose clients the daemon takes. */
void container_print(
	const struct place *place, uid_t uid, gid_t gid, enum container_form form, FILE *to);
