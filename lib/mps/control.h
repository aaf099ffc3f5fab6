/* nvidia-cuda-mps-control, asked as its users ask it: a command on its stdin, text on its stdout.
 * Protocol v2 (man nvidia-cuda-mps-control); each call has a limit, since the program waits for a
 * daemon that does not answer. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTROL_LIMIT_US 3000000
#define CONTROL_TEXT 16384

struct control {
	char program[PATH_MAX];
	const char *pipe, *log; /* log may be NULL, where no daemon is started */
	uint64_t limit_us;      /* of each command; CONTROL_LIMIT_US, or another */
};

/* Finds the program: in PATH, else where container toolkits mount it. 0, or -ENOENT. */
int control_find(const char *pipe, const char *log, struct control *ret_control);

/* Runs it with `arguments` (NULL: none), `command` and a line end on its stdin (NULL: nothing).
 * Returns 0 with what it said, stdout and stderr together, and how it ended; -ETIMEDOUT, it is
 * killed then; -errno. */
struct control_reply {
	char text[CONTROL_TEXT]; /* without a newline at its end; cut where it is longer */
	int exit;                /* its exit status, or 128 and the signal */
};
int control_run(const struct control *control, const char *const *arguments, const char *command,
	uint64_t limit_us, struct control_reply *ret_reply);

/* One command. */
__attribute__((format(printf, 3, 4))) int control_ask(
	const struct control *control, struct control_reply *ret_reply, const char *format, ...);

/* Whether a daemon listens in that folder, by connecting to its socket, as clients do; the daemon
 * notes "User did not send valid credentials" in its log, as it does of each client. 0;
 * -ECONNREFUSED: nobody does, the socket is stale; -ENOENT: there is none; -EACCES: it is out of
 * reach; -ENAMETOOLONG; -errno. */
int control_probe(const char *pipe);
