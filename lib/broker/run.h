/* A run: what one program did, as one JSON line, made from its page (which is hostile). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct client;

/* How the process ended is told by its page; else by the kernel, as far as this one does
 * (PIDFD_GET_INFO since Linux 6.15, else /proc while nobody has reaped it).
 *
 * The line, NUL-terminated, to be freed by the caller; 0, -ENOMEM, -ENOBUFS, or RUN_EMPTY where the
 * program did nothing. */
#define RUN_EMPTY 1
int run_line(
	const struct client *client, uint64_t now_realtime_us, char **ret_line, size_t *ret_length);
