/* A run: what one program did, as one JSON line, made from its page (which is hostile). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct client;

enum run_exit { RUN_UNKNOWN, RUN_EXITED, RUN_KILLED };

/* How the process behind the pidfd ended, as far as this kernel tells (PIDFD_GET_INFO since Linux
 * 6.15, else /proc while nobody has reaped it). `pid` may be 0: not visible here. */
enum run_exit run_exit_of(int pidfd, int pid);

/* The line, NUL-terminated, to be freed by the caller; 0, -ENOMEM, -ENOBUFS, or RUN_EMPTY where the
 * program did nothing. */
#define RUN_EMPTY 1
int run_line(const struct client *client, enum run_exit how, uint64_t now_realtime_us,
	char **ret_line, size_t *ret_length);
