/* Judging a pipe folder. Runs in the hearth tool. What programs meet in each state is what they met
 * on an H200 (lib/mps/README.md). Asks the daemon no more than needed: it may hang. */
#include "mps/judge.h"

#include "mps/control.h"
#include "mps/daemon.h"
#include "region/address.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASK_LIMIT_US 2000000
#define PLAIN "programs run without MPS"

__attribute__((format(printf, 3, 4))) static void say(
	struct judgement *judgement, enum judge_state state, const char *format, ...)
{
	va_list words;

	judgement->state = state;
	va_start(words, format);
	vsnprintf(judgement->text, sizeof(judgement->text), format, words);
	va_end(words);
}

__attribute__((format(printf, 2, 3))) static void mend(
	struct judgement *judgement, const char *format, ...)
{
	va_list words;

	va_start(words, format);
	vsnprintf(judgement->remedy, sizeof(judgement->remedy), format, words);
	va_end(words);
}

static uid_t uid_of(pid_t pid)
{
	char path[64];
	struct stat info;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &info) ? (uid_t)-1 : info.st_uid;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[512] = "";
	const char *end;
	FILE *file;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fgets(text, sizeof(text), file) && (end = strrchr(text, ')')) &&
		sscanf(end + 1, " %*c %d", &parent) != 1)
		parent = 0;
	fclose(file);
	return parent;
}

static bool is_multiuser(pid_t daemon)
{
	char path[64], text[4096];
	FILE *file;
	size_t got;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)daemon);
	file = fopen(path, "re");
	if (!file)
		return false;
	got = fread(text, 1, sizeof(text), file);
	fclose(file);
	return memmem(text, got, "multiuser-server", 16) || memmem(text, got, "\0-M", 4);
}

/* The daemon's server, by looking: it answers its own user and root alone. */
static pid_t find_server(pid_t daemon)
{
	struct dirent *entry;
	DIR *dir = opendir("/proc");
	pid_t server = 0;

	while (dir && !server && (entry = readdir(dir))) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 0 && parent_of(pid) == daemon && daemon_is(pid, "server"))
			server = pid;
	}
	if (dir)
		closedir(dir);
	return server;
}

/* 0 where there is a daemon to look at; else all has been said. */
static int judge_socket(const char *folder, struct judgement *judgement)
{
	struct stat info;
	int rc;

	if (folder[0] != '/') {
		say(judgement, JUDGE_RELATIVE,
			"CUDA_MPS_PIPE_DIRECTORY=%.100s is no absolute path: " PLAIN, folder);
		mend(judgement, "set it to the folder that `hearth mps status` names");
		return -1;
	}
	if (strlen(folder) + sizeof("/control") > ADDRESS_MAX) {
		say(judgement, JUDGE_TOO_LONG,
			"CUDA_MPS_PIPE_DIRECTORY=%.100s is longer than a socket's path can "
			"be: " PLAIN,
			folder);
		mend(judgement, "have the daemon in a folder with a shorter name");
		return -1;
	}
	rc = control_probe(folder);
	if (!rc)
		return 0;
	if (rc == -EACCES || rc == -EPERM) {
		say(judgement, JUDGE_OUT_OF_REACH, "%s/control is out of reach for uid %u: " PLAIN,
			folder, (unsigned)geteuid());
		mend(judgement, "run it as the daemon's user, or `hearth mps start` as this one; a "
				"folder of "
				"root's for all needs mode 0755, and so does each above it");
	} else if (rc == -ECONNREFUSED) {
		say(judgement, JUDGE_STALE, "%s/control is stale, no daemon listens there: " PLAIN,
			folder);
		mend(judgement,
			"hearth mps start, or nvidia-cuda-mps-control -d, with this folder");
	} else if (stat(folder, &info)) {
		say(judgement, JUDGE_NO_FOLDER, "%s is not there: " PLAIN, folder);
		mend(judgement,
			"hearth mps start; in a container, mount it: `hearth mps env --docker`");
	} else if (rc == -ETIMEDOUT || rc == -EAGAIN) {
		say(judgement, JUDGE_HANGS, "the daemon of %s accepts nobody: programs wait",
			folder);
		mend(judgement, "hearth mps stop --force, and hearth mps start");
	} else {
		say(judgement, JUDGE_EMPTY, "%s has no socket `control` (%s): " PLAIN, folder,
			strerror(-rc));
		mend(judgement,
			"hearth mps start; in a container, mount the daemon's own folder there: "
			"`hearth mps env --docker`");
	}
	return -1;
}

/* With the daemon's own word, where it gives it to us. */
static int ask_servers(
	const char *folder, struct judgement *judgement, struct daemon_server *ret_server)
{
	struct daemon_servers servers;
	struct control control;
	int rc = control_find(folder, NULL, &control);

	if (rc)
		return rc;
	control.limit_us = ASK_LIMIT_US;
	rc = daemon_list(&control, &servers);
	if (!rc && servers.count) {
		*ret_server = servers.items[0];
		judgement->server = ret_server->pid;
		judgement->server_uid = ret_server->uid;
		judgement->clients = (int)ret_server->client_count;
	}
	return rc;
}

static void judge_server(
	const char *folder, bool is_shared, const char *state, struct judgement *judgement)
{
	char clients[64] = "an unknown number of";

	if (judgement->clients >= 0)
		snprintf(clients, sizeof(clients), "%d", judgement->clients);
	if (!judgement->server) {
		say(judgement, JUDGE_NO_SERVER,
			"the daemon of %s (pid %d) has no server yet: the first client waits for "
			"its "
			"start",
			folder, (int)judgement->daemon);
		judgement->is_client = true;
	} else if (!is_shared && judgement->server_uid != geteuid()) {
		say(judgement, JUDGE_OTHER_USER,
			"the server of %s (pid %d) is uid %u's, with %s clients: a program of uid "
			"%u "
			"waits until they have ended",
			folder, (int)judgement->server, (unsigned)judgement->server_uid, clients,
			(unsigned)geteuid());
		mend(judgement,
			"wait, without killing programs that wait, which may hang the daemon; or "
			"`hearth mps start` for a daemon of one's own; or, as root, one with "
			"-multiuser-server for all");
	} else if (!strcasecmp(state, "fault")) {
		say(judgement, JUDGE_FAULT, "the server of %s (pid %d) is in state FAULT", folder,
			(int)judgement->server);
		mend(judgement, "hearth mps logs; hearth mps stop --force, and hearth mps start");
	} else if (judgement->clients >= JUDGE_FULL_CLIENTS) {
		say(judgement, JUDGE_FULL,
			"the server of %s (pid %d) has %d clients: it takes no more than %d, of "
			"newer drivers 60",
			folder, (int)judgement->server, judgement->clients, JUDGE_FULL_CLIENTS);
		mend(judgement, "hearth mps clients lists them; wait for one to end, and leave "
				"CUDA_DEVICE_MAX_CONNECTIONS unset");
	} else {
		say(judgement, JUDGE_FINE,
			"the daemon of %s (pid %d) serves uid %u, with %s clients: programs become "
			"clients",
			folder, (int)judgement->daemon, (unsigned)geteuid(), clients);
		judgement->is_client = true;
	}
}

void judge_folder(const char *folder, bool asks, struct judgement *ret_judgement)
{
	struct judgement judgement = {.clients = -1};
	struct daemon_server server = {0};
	uid_t daemon_uid;
	int rc = judge_socket(folder, &judgement);

	*ret_judgement = judgement;
	if (rc)
		return;
	judgement.daemon = daemon_pid(folder);
	daemon_uid = judgement.daemon ? uid_of(judgement.daemon) : geteuid();
	if (daemon_uid && daemon_uid != geteuid()) {
		say(&judgement, JUDGE_STRANGER,
			"the daemon of %s is uid %u's: cuInit of a program of uid %u is 805, and "
			"the "
			"daemon ends its server for it",
			folder, (unsigned)daemon_uid, (unsigned)geteuid());
		mend(&judgement, "run it as uid %u, or `hearth mps start` as this user",
			(unsigned)daemon_uid);
	} else if (asks && (daemon_uid == geteuid() || !geteuid())) {
		rc = ask_servers(folder, &judgement, &server);
		if (rc == -EPROTO) {
			say(&judgement, JUDGE_UNKNOWN,
				"the daemon of %s (pid %d) does not answer as protocol v2 has it "
				"(v3, "
				"perhaps): Hearth leaves it alone",
				folder, (int)judgement.daemon);
			judgement.is_client = true;
		} else if (rc && rc != -ENOENT) {
			say(&judgement, JUDGE_HANGS,
				"the daemon of %s (pid %d) does not answer: programs wait", folder,
				(int)judgement.daemon);
			mend(&judgement,
				"hearth mps stop --force, and hearth mps start; a daemon that is "
				"not "
				"Hearth's: kill -9 %d",
				(int)judgement.daemon);
		} else {
			judge_server(
				folder, is_multiuser(judgement.daemon), server.state, &judgement);
		}
	} else {
		judgement.server = find_server(judgement.daemon);
		judgement.server_uid = judgement.server ? uid_of(judgement.server) : 0;
		judge_server(folder, is_multiuser(judgement.daemon), "", &judgement);
	}
	*ret_judgement = judgement;
}

bool judge_is_bad(const struct judgement *judgement)
{
	return judgement->state == JUDGE_HANGS || judgement->state == JUDGE_STRANGER ||
	       judgement->state == JUDGE_OTHER_USER || judgement->state == JUDGE_FAULT;
}
