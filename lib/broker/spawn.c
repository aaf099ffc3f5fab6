/* Starting hearthd from `hearth run`, before it execs the program. Between fork and exec only
 * async-signal-safe calls are made. */
#include "broker/spawn.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/install.h"
#include "base/socket.h"
#include "broker/machine.h"
#include "broker/process.h"
#include "region/address.h"

#include <errno.h>
#include <limits.h>
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
static void become(const char *path, char *const arguments[], char *const environment[])
{
	setsid();
	if (chdir("/") < 0 || process_silence(false))
		_exit(EXIT_FAILURE);
	process_close_from(STDERR_FILENO + 1);
	process_reset_signals();
	execve(path, arguments, environment);
	_exit(EXIT_FAILURE);
}

static int fork_twice(const char *path, char *const arguments[], char *const environment[])
{
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (!child) {
		pid_t grandchild = fork();

		if (!grandchild)
			become(path, arguments, environment);
		_exit(grandchild < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

int broker_spawn(const struct settings *settings, const char *path)
{
	char found[PATH_MAX], job[32] = "--job=0";
	char *arguments[] = {NAME, "--foreground", job, NULL};
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
	rc = fork_twice(path, arguments, environment);
	free(environment);
	return rc;
}
