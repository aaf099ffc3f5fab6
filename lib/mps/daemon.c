/* What a daemon says, read. Runs in the hearth tool and in the supervisor; only asks. */
#include "mps/daemon.h"

#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PID_FILE "nvidia-cuda-mps-control.pid"
#define PROGRAM "nvidia-cuda-mps-"
#define START_LIMIT_US 30000000
#define LOOK_AGAIN_NS 20000000

/* The program may be a script, whose name then stands behind its interpreter and the options. */
bool daemon_is(pid_t pid, const char *what)
{
	char path[64], text[PATH_MAX] = "", name[64];
	FILE *file;
	size_t got, at = 0;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	file = pid > 0 ? fopen(path, "re") : NULL;
	if (!file)
		return false;
	got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	snprintf(name, sizeof(name), PROGRAM "%s", what);
	for (int word = 0; word < 3 && at < got; word++) {
		const char *base = strrchr(text + at, '/');

		if (!strcmp(base ? base + 1 : text + at, name))
			return true;
		at += strlen(text + at) + 1;
	}
	return false;
}

pid_t daemon_pid(const char *pipe)
{
	char path[PATH_MAX];
	FILE *file;
	int pid = 0;

	snprintf(path, sizeof(path), "%s/" PID_FILE, pipe);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%d", &pid) != 1)
		pid = 0;
	fclose(file);
	return daemon_is(pid, "control") ? pid : 0;
}

/* The numbers of a text that consists of nothing else; -1 where there is anything else in it. */
static int take_pids(const char *text, pid_t *ret_pids, int most)
{
	int count = 0;

	for (const char *at = text; *at;) {
		char *end;
		long number;

		if (isspace((unsigned char)*at)) {
			at++;
			continue;
		}
		number = strtol(at, &end, 10);
		if (end == at || (*end && !isspace((unsigned char)*end)) || number <= 0)
			return -1;
		if (count < most)
			ret_pids[count++] = (pid_t)number;
		at = end;
	}
	return count;
}

static uid_t uid_of(pid_t pid)
{
	char path[64];
	struct stat info;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &info) ? (uid_t)-1 : info.st_uid;
}

static int describe(const struct control *control, pid_t pid, struct daemon_server *ret_server)
{
	struct daemon_server server = {.pid = pid, .uid = uid_of(pid)};
	struct control_reply reply;
	int rc = control_ask(control, &reply, "get_server_status %d", (int)pid), count;

	if (rc)
		return rc;
	/* One word; anything else is a complaint. */
	if (strlen(reply.text) < sizeof(server.state) && !strchr(reply.text, ' '))
		strcpy(server.state, reply.text);
	rc = control_ask(control, &reply, "get_client_list %d", (int)pid);
	if (rc)
		return rc;
	count = take_pids(reply.text, server.clients, DAEMON_MOST_CLIENTS);
	server.client_count = count > 0 ? (size_t)count : 0;
	*ret_server = server;
	return 0;
}

int daemon_list(const struct control *control, struct daemon_servers *ret_servers)
{
	pid_t pids[DAEMON_MOST_SERVERS];
	struct control_reply reply;
	int rc = control_ask(control, &reply, "get_server_list"), count;

	ret_servers->count = 0;
	if (rc)
		return rc;
	count = take_pids(reply.text, pids, DAEMON_MOST_SERVERS);
	if (count < 0 || reply.exit)
		return -EPROTO;
	for (int i = 0; i < count && !rc; i++) {
		rc = describe(control, pids[i], &ret_servers->items[ret_servers->count]);
		ret_servers->count += !rc;
	}
	return rc;
}

/* The server that is active; 0: not yet. */
static pid_t find_active(const struct control *control, uid_t uid)
{
	struct daemon_servers servers;

	if (daemon_list(control, &servers))
		return 0;
	for (size_t i = 0; i < servers.count; i++)
		if (servers.items[i].uid == uid && !strcasecmp(servers.items[i].state, "active"))
			return servers.items[i].pid;
	return 0;
}

int daemon_start_server(
	const struct control *control, uid_t uid, pid_t *ret_pid, struct control_reply *ret_reply)
{
	const struct timespec pause = {.tv_nsec = LOOK_AGAIN_NS};
	uint64_t deadline_us = clock_monotonic_us() + START_LIMIT_US;
	int rc = control_ask(control, ret_reply, "start_server -uid %u", (unsigned)uid);

	if (rc)
		return rc;
	while (!(*ret_pid = find_active(control, uid))) {
		if (clock_monotonic_us() > deadline_us)
			return *ret_reply->text ? -EPROTO : -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return 0;
}
