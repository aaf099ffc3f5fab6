/* Running nvidia-cuda-mps-control. Runs in the hearth tool and in the supervisor; gives the program
 * nothing of ours but a clean environment. Must never wait longer than it was allowed to. */
#include "mps/control.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "nvidia-cuda-mps-control"
#define US_PER_MS 1000
#define PROBE_LIMIT_US 200000

extern char **environ;

static bool is_program(const char *path)
{
	struct stat info;

	return !stat(path, &info) && S_ISREG(info.st_mode) && !access(path, X_OK);
}

int control_find(const char *pipe, const char *log, struct control *ret_control)
{
	static const char *const places = "/usr/bin:/usr/local/nvidia/bin:/usr/local/bin";
	const char *lists[] = {env_get(ENV_PATH), places};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		for (const char *at = lists[i]; at;
			at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
			int length = (int)strcspn(at, ":");

			snprintf(ret_control->program, PATH_MAX, "%.*s/" NAME, length, at);
			if (length && *at == '/' && is_program(ret_control->program)) {
				ret_control->pipe = pipe;
				ret_control->log = log;
				ret_control->limit_us = CONTROL_LIMIT_US;
				return 0;
			}
		}
	return -ENOENT;
}

/* Without our preload, and with no CUDA setting but the daemon's folders: what the daemon is
 * started with holds for its clients, too. */
static char **make_environment(const struct control *control, char texts[2][PATH_MAX])
{
	size_t count = 0, kept = 0;
	char **list;

	while (environ[count])
		count++;
	list = calloc(count + 3, sizeof(*list));
	for (size_t i = 0; list && i < count; i++)
		if (strncmp(environ[i], "LD_PRELOAD=", 11) && strncmp(environ[i], "LD_AUDIT=", 9) &&
			strncmp(environ[i], "CUDA_", 5))
			list[kept++] = environ[i];
	if (!list)
		return NULL;
	snprintf(texts[0], PATH_MAX, "CUDA_MPS_PIPE_DIRECTORY=%s", control->pipe);
	list[kept++] = texts[0];
	if (control->log) {
		snprintf(texts[1], PATH_MAX, "CUDA_MPS_LOG_DIRECTORY=%s", control->log);
		list[kept++] = texts[1];
	}
	return list;
}

static int spawn(const struct control *control, const char *const *arguments, int in, int out,
	pid_t *ret_pid)
{
	char *words[8] = {(char *)NAME}, texts[2][PATH_MAX];
	char **environment = make_environment(control, texts);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t set;
	int rc;

	if (!environment)
		return -ENOMEM;
	for (size_t i = 0; arguments && arguments[i] && i < 6; i++)
		words[i + 1] = (char *)arguments[i];
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&attributes, &set);
	sigfillset(&set);
	posix_spawnattr_setsigdefault(&attributes, &set);
	posix_spawnattr_setflags(&attributes,
		POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!rc)
		rc = posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
	if (!rc)
		rc = posix_spawn(
			ret_pid, control->program, &actions, &attributes, words, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	free(environment);
	return -rc;
}

static void take_text(int fd, struct control_reply *reply, size_t *size)
{
	char rest[512];
	ssize_t got;

	do {
		bool is_full = *size == sizeof(reply->text) - 1;

		got = is_full ? read(fd, rest, sizeof(rest))
			      : read(fd, reply->text + *size, sizeof(reply->text) - 1 - *size);
		if (got > 0 && !is_full)
			*size += (size_t)got;
	} while (got > 0);
}

/* Until the program itself has ended; a daemon that it leaves behind may keep its stdout. */
static int attend(pid_t pid, int out, uint64_t deadline_us, struct control_reply *ret_reply)
{
	int end = (int)syscall(SYS_pidfd_open, pid, 0), status, rc = 0;
	struct pollfd fds[2] = {{.fd = end, .events = POLLIN}, {.fd = out, .events = POLLIN}};
	size_t size = 0;

	while (!rc && !fds[0].revents) {
		uint64_t now_us = clock_monotonic_us();
		int ms = now_us < deadline_us
				 ? (int)((deadline_us - now_us + US_PER_MS - 1) / US_PER_MS)
				 : 0;

		if (poll(fds, 2, ms) < 0 && errno != EINTR)
			rc = -errno;
		else if (clock_monotonic_us() >= deadline_us && !fds[0].revents)
			rc = -ETIMEDOUT;
		take_text(out, ret_reply, &size);
		if (fds[1].revents & (POLLHUP | POLLERR))
			fds[1].fd = -1;
	}
	if (rc)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	take_text(out, ret_reply, &size);
	while (size && ret_reply->text[size - 1] == '\n')
		size--;
	ret_reply->text[size] = '\0';
	ret_reply->exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (end >= 0)
		close(end);
	return rc;
}

int control_run(const struct control *control, const char *const *arguments, const char *command,
	uint64_t limit_us, struct control_reply *ret_reply)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, rc = 0;
	pid_t pid;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		rc = -errno;
	if (!rc && fcntl(out[0], F_SETFL, O_NONBLOCK))
		rc = -errno;
	/* A pipe holds more than any command; it is written before there is a reader. */
	if (!rc && command && dprintf(in[1], "%s\n", command) < 0)
		rc = -errno;
	if (!rc)
		rc = spawn(control, arguments, in[0], out[1], &pid);
	for (int i = 0; i < 2; i++) {
		if (in[i] >= 0)
			close(in[i]);
	}
	if (out[1] >= 0)
		close(out[1]);
	if (!rc)
		rc = attend(pid, out[0], clock_monotonic_us() + limit_us, ret_reply);
	if (out[0] >= 0)
		close(out[0]);
	return rc;
}

int control_ask(
	const struct control *control, struct control_reply *ret_reply, const char *format, ...)
{
	char command[256];
	va_list words;

	va_start(words, format);
	vsnprintf(command, sizeof(command), format, words);
	va_end(words);
	return control_run(control, NULL, command, control->limit_us, ret_reply);
}

int control_probe(const char *pipe)
{
	char path[PATH_MAX];
	struct stat info;
	int fd, rc;

	snprintf(path, sizeof(path), "%s/control", pipe);
	if (stat(path, &info))
		return -errno;
	rc = socket_connect(path, clock_monotonic_us() + PROBE_LIMIT_US, &fd);
	if (!rc)
		close(fd);
	return rc;
}
