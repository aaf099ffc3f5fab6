/* Where Hearth's MPS daemons live: each user's own in mps/ beside the user's broker, and the
 * machine's, which root starts for listed users, in /run/hearth/mps. Never /tmp/nvidia-mps, so that
 * nothing becomes a client unasked. In the folder: pipe/ and log/ for the daemon, `lock`, which the
 * supervisor holds for life, `state` and `limits`, which are JSON. */
#pragma once

#include "region/address.h"

#include <stdbool.h>
#include <sys/types.h>

#define PLACE_MACHINE "/run/hearth/mps"

struct place {
	char folder[ADDRESS_MAX];
	char pipe[ADDRESS_MAX]; /* CUDA_MPS_PIPE_DIRECTORY */
	char log[ADDRESS_MAX];  /* CUDA_MPS_LOG_DIRECTORY */
	bool is_machine;
};

/* The names, whether or not anything is there. 0, or -ENAMETOOLONG: what the daemon makes in pipe/
 * are sockets, whose paths are short. */
int place_of(bool is_machine, struct place *ret_place);

/* Makes the folders that are missing and checks those that are there: a user's own are 0700, the
 * machine's 0711, so that the users it serves get through to pipe/. 0, or -errno (-EPERM: somebody
 * else's) with the folder it is about. */
int place_make(const struct place *place, char ret_path[ADDRESS_MAX]);

/* Of a file in the folder. */
void place_path(const struct place *place, const char *name, char ret_path[ADDRESS_MAX]);

/* Takes the lock; it is held until the descriptor is closed or the process ends. 0 with the
 * descriptor; -EAGAIN where a supervisor has it; -errno. */
int place_lock(const struct place *place, int *ret_fd);

/* The supervisor's process: who holds the lock. 0 where nobody does, or not in our pid namespace.
 */
pid_t place_holder(const struct place *place);

/* The place that serves us: our own where a supervisor runs there, else the machine's where one
 * does. 0 with the supervisor's pid, or -ENOENT with our own place. */
int place_serving(struct place *ret_place, pid_t *ret_supervisor);
