/* Making this process, and what it execs, a client of MPS: the variables that the driver reads. */
#pragma once

#include <stddef.h>

#define ATTACH_WHY 1024

struct attach_wish {          /* each NULL where it is not wished for */
	const char *memory;   /* "2GiB": on each device */
	const char *threads;  /* "50%" */
	const char *priority; /* "low" or "normal" */
};

/* Finds the daemon: CUDA_MPS_PIPE_DIRECTORY's, else the user's own of Hearth's, else the machine's
 * where root lists this user. Sets the variables in our environment: CUDA_MPS_PIPE_DIRECTORY,
 * CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, CUDA_MPS_CLIENT_PRIORITY,
 * and CUDA_VISIBLE_DEVICES by UUID where it has numbers and the broker knows the devices. Returns
 * 0; ATTACH_PLAIN where the program would not become a client at once: why, and what mends it, is
 * in ret_why, and the environment is one in which it runs without MPS; -EINVAL where a wish cannot
 * be understood, with the value in ret_why; -ENOMEM. */
#define ATTACH_PLAIN 1
int attach_prepare(const struct attach_wish *wish, char ret_why[ATTACH_WHY]);
