/* Starting hearthd from `hearth run`, before it execs the program. Between fork and exec only
 * async-signal-safe calls are made.
 *
 * hearthd's stdout is a pipe to us until it serves, when it lets go of its stdio; it lets go of it
 * too where it ends before. The end of the pipe is all that we wait for. */
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
	if (chdir("/") < 0 || process_silence(false) || dup2(until_ready, STDOUT_FILENO) < 0)
		_exit(EXIT_FAILURE);
	process_close_from(STDERR_FILENO + 1);
	process_reset_signals();
	execve(path, arguments, environment);
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

static void wait_until_ready(int pipe_end)
{
	uint64_t deadline_us = clock_monotonic_us() + SPAWN_LIMIT_US, now_us;
	struct pollfd end = {.fd = pipe_end, .events = POLLIN};
	int rc = -1;

	while (rc < 0 && (now_us = clock_monotonic_us()) < deadline_us) {
		rc = poll(&end, 1, (int)((deadline_us - now_us + 999) / 1000));
		if (rc < 0 && errno != EINTR)
			return;
	}
}

/* Starts it, and waits until it serves, ends, or takes too long. */
static int start(const char *path, char *const arguments[], char *const environment[])
{
	int ready[2], rc;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return -errno;
	rc = fork_twice(path, arguments, environment, ready[1]);
	close(ready[1]);
	if (!rc)
		wait_until_ready(ready[0]);
	close(ready[0]);
	return rc;
}

int broker_spawn(const struct settings *settings, const char *path)
{
	char found[PATH_MAX], job[32] = "--job=0";
	char *arguments[] = {NAME, job, NULL};
	char **environment;
	int rc = 0;

	if (is_running(settings))
		return SPAWN_RUNNING;
	if (!path) {
		rc = install_find(INSTALL_BROKER, sizeof(found), found);
		path = found;
	}
	if (!rc && access(path, X_OK) < 0)
		rc = -errno;
	if (rc)
		return rc;
	/* hearthd is nobody's child once it runs: the job must be found now. */
	if (env_get(ENV_SLURM_JOB_ID) || env_get(ENV_PBS_JOBID))
		snprintf(job, sizeof(job), "--job=%d", (int)machine_job_keeper(getppid()));
	environment = process_environment(PROCESS_BROKER, NULL);
	if (!environment)
		return -ENOMEM;
	rc = start(path, arguments, environment);
	free(environment);
	return rc;
}
