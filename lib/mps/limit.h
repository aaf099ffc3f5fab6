/* Limits of MPS clients: memory on a device, and the share of its threads. The daemon's defaults
 * hold for servers started afterwards, a server's for clients started afterwards; a client's own
 * variables can only lower them (MPS documentation, "Resource Limits"; seen on an H200). */
#pragma once

#include "mps/control.h"

#include <jansson.h>
#include <sys/types.h>

#define LIMIT_VALUE 24
#define LIMIT_NONE "0"

/* "2GiB", "2G", "1.5GiB", "512MB": an integer with M or G behind it, as MPS takes it; both are
 * powers of two there. "none" lifts the limit. 0 or -EINVAL (also for less than 1 MiB). */
int limit_parse_memory(const char *text, char ret_value[LIMIT_VALUE]);

/* "50%" or "50": 1..100. 0 or -EINVAL. */
int limit_parse_threads(const char *text, unsigned *ret_percent);

/* Has the daemon take {"threads": 50, "memory": {"0": "2G"}}: as its defaults, and, where `server`
 * is not 0, as that server's. 0 or as control_run; -EPROTO where the daemon refuses, with its
 * words. */
int limit_apply(const struct control *control, const json_t *limits, pid_t server,
	struct control_reply *ret_reply);
