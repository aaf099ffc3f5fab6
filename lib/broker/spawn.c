/* Starting hearthd from `hearth run`, before it execs the program. Between fork and exec only
 * async-signal-safe calls are made.
 *
 * hearthd's stdout and stderr are a pipe to us until it serves, when it lets go of its stdio; it
 * lets go of it too where it ends before. We wait for the end of the pipe; what it says is why it
 * ended.
 */
#include "broker/spawn.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/install.h"
#include "base/socket.h"
#include "broker/machine.h"
#include "broker/process.h"
#include "region/address.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME "hearthd"
#define PROBE_US 1000 /* a broker with a full backlog is one that runs */

static bool is_running(const struct settings *settings)
{
	struct address candidates[ADDRESS_CANDIDATES];
	size_t count = address_candidates(settings, candidates);

	for (size_t i = 0; i < count; i++) {
		int fd, rc;

		rc = socket_connect(candidates[i].path, clock_monotonic_us() + PROBE_US, &fd);
		if (!rc)
			close(fd);
		if (!rc || rc == -ETIMEDOUT)
			return true;
	}
	return false;
}

/* In the grandchild. */
static void become(
	const char *path, char *const arguments[], char *const environment[], int until_ready)
{
	setsid();
	if (chdir("/") < 0 || process_silence(false) || dup2(until_ready, STDOUT_FILENO) < 0 ||
		dup2(until_ready, STDERR_FILENO) < 0)
		_exit(EXIT_FAILURE);
	process_close_from(STDERR_FILENO + 1);
	process_reset_signals();
	/* We may have gone on by the time that it says something. */
	signal(SIGPIPE, SIG_IGN);
	execve(path, arguments, environment);
	dprintf(STDERR_FILENO, "%s: %s\n", path, strerror(errno));
	_exit(EXIT_FAILURE);
}

static int fork_twice(
	const char *path, char *const arguments[], char *const environment[], int until_ready)
{
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (!child) {
		pid_t grandchild = fork();

		if (!grandchild)
			become(path, arguments, environment, until_ready);
		_exit(grandchild < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* Reads to the pipe's end what hearthd says, NUL-terminated. False where the time is up. */
static bool listen_to(int pipe_end, char ret_said[SPAWN_WHY_SIZE])
{
	uint64_t deadline_us = clock_monotonic_us() + SPAWN_LIMIT_US, now_us;
	struct pollfd end = {.fd = pipe_end, .events = POLLIN};
	char rest[SPAWN_WHY_SIZE];
	size_t length = 0;
	ssize_t got = 1;

	while (got && (now_us = clock_monotonic_us()) < deadline_us) {
		bool is_full = length == SPAWN_WHY_SIZE - 1;
		int rc = poll(&end, 1, (int)((deadline_us - now_us + 999) / 1000));

		if (rc < 0 && errno != EINTR)
			break;
		if (rc <= 0)
			continue;
		got = is_full ? read(pipe_end, rest, sizeof(rest))
			      : read(pipe_end, ret_said + length, SPAWN_WHY_SIZE - 1 - length);
		length += got > 0 && !is_full ? (size_t)got : 0;
	}
	ret_said[length] = '\0';
	return !got;
}

/* The last line is what it ended for; those before are about settings. */
static void take_last_line(const char *said, char ret_why[SPAWN_WHY_SIZE])
{
	size_t length = strlen(said);
	const char *line;

	while (length && said[length - 1] == '\n')
		length--;
	line = memrchr(said, '\n', length);
	line = line ? line + 1 : said;
	snprintf(ret_why, SPAWN_WHY_SIZE, "%.*s", (int)(said + length - line), line);
	if (!*ret_why)
		snprintf(ret_why, SPAWN_WHY_SIZE, NAME " ended and did not say why");
}

/* Starts it, and waits until it serves, ends, or takes too long. */
static int start(const struct settings *settings, const char *path, char *const arguments[],
	char *const environment[], char ret_why[SPAWN_WHY_SIZE])
{
	char said[SPAWN_WHY_SIZE];
	bool is_quiet = false;
	int ready[2], rc;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	rc = fork_twice(path, arguments, environment, ready[1]);
	close(ready[1]);
	if (!rc)
		is_quiet = listen_to(ready[0], said);
	close(ready[0]);
	if (rc || !is_quiet || is_running(settings))
		return rc;
	take_last_line(said, ret_why);
	return SPAWN_ENDED;
}

static int spawn(const struct settings *settings, const char *path, char ret_why[SPAWN_WHY_SIZE])
{
	char found[PATH_MAX], job[32] = "--job=0";
	char *arguments[] = {NAME, job, NULL};
	char **environment;
	int rc = 0;

	if (is_running(settings))
		return SPAWN_RUNNING;
	if (!path) {
		rc = install_find(INSTALL_BROKER, sizeof(found), found);
		path = rc ? install_name(INSTALL_BROKER) : found;
	}
	if (!rc && access(path, X_OK) < 0)
		rc = -errno;
	if (rc) {
		snprintf(ret_why, SPAWN_WHY_SIZE, "%.400s: %s", path, strerror(-rc));
		return rc;
	}
	/* hearthd is nobody's child once it runs: the job must be found now. */
	if (env_get(ENV_SLURM_JOB_ID) || env_get(ENV_PBS_JOBID))
		snprintf(job, sizeof(job), "--job=%d", (int)machine_job_keeper(getppid()));
	environment = process_environment(PROCESS_BROKER, NULL);
	if (!environment)
		return -ENOMEM;
	rc = start(settings, path, arguments, environment, ret_why);
	free(environment);
	return rc;
}

int broker_spawn(const struct settings *settings, const char *path, char ret_why[SPAWN_WHY_SIZE])
{
	char why[SPAWN_WHY_SIZE] = "";
	int rc = spawn(settings, path, why);

	if (rc < 0 && !*why)
		snprintf(why, sizeof(why), "%s", strerror(-rc));
	if (ret_why)
		memcpy(ret_why, why, SPAWN_WHY_SIZE);
	return rc;
}
