/* One running daemon: its server and that server's clients, by the commands of protocol v2. What
 * the texts look like is in lib/mps/README.md, as seen on an H200. */
#pragma once

#include "mps/control.h"

#include <stdbool.h>
#include <sys/types.h>

#define DAEMON_MOST_SERVERS 16
#define DAEMON_MOST_CLIENTS 128

struct daemon_server {
	pid_t pid;
	uid_t uid;
	char state[24]; /* "ACTIVE", "INITIALIZING", "FAULT"; empty where it was not told */
	size_t client_count;
	pid_t clients[DAEMON_MOST_CLIENTS]; /* those that have a context */
};

struct daemon_servers {
	size_t count;
	struct daemon_server items[DAEMON_MOST_SERVERS];
};

/* The daemon of these folders: what its pid file says, where that is a process of that name. 0:
 * none. */
pid_t daemon_pid(const char *pipe);

/* Whether a process runs that program of MPS ("control", "server"): by its name in /proc. */
bool daemon_is(pid_t pid, const char *what);

/* Its servers, with states and clients. 0 or as control_run. */
int daemon_list(const struct control *control, struct daemon_servers *ret_servers);

/* Has it start the server of `uid`, so that no client waits for that, and waits until it is active.
 * 0 with its pid; -ETIMEDOUT; -EPROTO where the daemon refuses, with its words. */
int daemon_start_server(
	const struct control *control, uid_t uid, pid_t *ret_pid, struct control_reply *ret_reply);
