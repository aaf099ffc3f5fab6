/* Starting clean processes. Runs in hearthd's main thread and in `hearth run` before it execs; the
 * parts that spawn.c uses after fork neither allocate nor lock. */
#include "broker/process.h"

#include "base/no_mps.h"
#include "broker/keeper_child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SELF "/proc/self/exe"
/* A keeper must never become a client of MPS: it would start the server, and in its turn keep other
 * users from theirs. */
#define NO_MPS "CUDA_MPS_PIPE_DIRECTORY=" NO_MPS_FOLDER

extern char **environ;

static bool has_prefix(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool is_kept(enum process_kind kind, const char *entry)
{
	if (has_prefix(entry, "LD_PRELOAD=") || has_prefix(entry, "LD_AUDIT=") ||
		has_prefix(entry, "CUDA_"))
		return false;
	if (!has_prefix(entry, "HEARTH") || has_prefix(entry, "HEARTH_DRIVER="))
		return true;
	return kind == PROCESS_BROKER &&
	       (has_prefix(entry, "HEARTH_SOCKET=") || has_prefix(entry, "HEARTH_STATE_DIR="));
}

char **process_environment(enum process_kind kind, const char *visible_devices)
{
	static char visible[4096 + sizeof("CUDA_VISIBLE_DEVICES=")];
	size_t count = 0, kept = 0;
	char **list;

	while (environ[count])
		count++;
	list = calloc(count + 3, sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < count; i++)
		if (is_kept(kind, environ[i]))
			list[kept++] = environ[i];
	if (kind == PROCESS_KEEPER)
		list[kept++] = NO_MPS;
	if (visible_devices) {
		snprintf(visible, sizeof(visible), "CUDA_VISIBLE_DEVICES=%s", visible_devices);
		list[kept++] = visible;
	}
	return list;
}

/* Before Linux 5.9: what /proc lists. */
static void close_listed(int first)
{
	struct dirent *entry;
	DIR *folder = opendir("/proc/self/fd");

	if (!folder) {
		long last = sysconf(_SC_OPEN_MAX);

		for (long fd = first; fd < last; fd++)
			close((int)fd);
		return;
	}
	while ((entry = readdir(folder))) {
		int fd = atoi(entry->d_name);

		if (fd >= first && fd != dirfd(folder))
			close(fd);
	}
	closedir(folder);
}

void process_close_from(int first)
{
	if (syscall(SYS_close_range, (unsigned int)first, UINT_MAX, 0) < 0)
		close_listed(first);
}

int process_silence(bool keep_stderr)
{
	int last = keep_stderr ? STDOUT_FILENO : STDERR_FILENO;
	int fd = open("/dev/null", O_RDWR);
	int rc = 0;

	if (fd < 0)
		return -errno;
	for (int i = STDIN_FILENO; i <= last && !rc; i++)
		if (dup2(fd, i) < 0)
			rc = -errno;
	if (fd > STDERR_FILENO)
		close(fd);
	return rc;
}

void process_reset_signals(void)
{
	const struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		sigaction(number, &action, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int set_attributes(posix_spawnattr_t *attributes)
{
	sigset_t set;
	int rc = posix_spawnattr_setflags(
		attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);

	sigemptyset(&set);
	if (!rc)
		rc = posix_spawnattr_setsigmask(attributes, &set);
	sigfillset(&set);
	if (!rc)
		rc = posix_spawnattr_setsigdefault(attributes, &set);
	return rc;
}

static int set_silent(posix_spawn_file_actions_t *actions, int first, int last)
{
	int rc = 0;

	for (int fd = first; fd <= last && !rc; fd++)
		rc = posix_spawn_file_actions_addopen(actions, fd, "/dev/null", O_RDWR, 0);
	return rc;
}

static int start(const char *program, char *const *arguments, const char *visible_devices,
	const posix_spawn_file_actions_t *actions, pid_t *ret_pid)
{
	char **environment = process_environment(PROCESS_KEEPER, visible_devices);
	posix_spawnattr_t attributes;
	int rc;

	if (!environment)
		return -ENOMEM;
	posix_spawnattr_init(&attributes);
	rc = set_attributes(&attributes);
	if (!rc)
		rc = posix_spawn(ret_pid, program, actions, &attributes, arguments, environment);
	posix_spawnattr_destroy(&attributes);
	free(environment);
	return -rc;
}

int process_start_keeper(
	const char *retain, const char *visible_devices, int channel, pid_t *ret_pid)
{
	char *arguments[] = {"hearthd", "--keeper", (char *)retain, NULL};
	posix_spawn_file_actions_t actions;
	int rc;

	posix_spawn_file_actions_init(&actions);
	rc = -posix_spawn_file_actions_adddup2(&actions, channel, KEEPER_FD);
	if (!rc)
		rc = -set_silent(&actions, STDIN_FILENO, STDERR_FILENO);
	if (!rc)
		rc = start(SELF, arguments, visible_devices, &actions, ret_pid);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

int process_start_prover(const struct prove_request *request, pid_t *ret_pid)
{
	char *arguments[] = {"hearthd", "--prove", (char *)request->what, (char *)request->driver,
		(char *)request->folder, (char *)request->readers, NULL};
	bool is_silent = request->out < 0;
	posix_spawn_file_actions_t actions;
	int rc;

	posix_spawn_file_actions_init(&actions);
	rc = is_silent ? 0
		       : -posix_spawn_file_actions_adddup2(&actions, request->out, STDOUT_FILENO);
	if (!rc)
		rc = -set_silent(&actions, STDIN_FILENO, is_silent ? STDERR_FILENO : STDIN_FILENO);
	if (!rc)
		rc = start(request->program ? request->program : SELF, arguments,
			request->visible_devices, &actions, ret_pid);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}
