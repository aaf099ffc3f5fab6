/* Becoming a daemon. Runs on hearthd's only thread, before the broker makes others. */
#include "broker/hearthd.h"

#include "base/log.h"
#include "broker/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int say_failure(
	const struct broker_options *options, const struct settings *settings, int rc)
{
	char folder[ADDRESS_MAX] = "/tmp";
	const char *where = settings->socket     ? settings->socket
			    : options->is_system ? ADDRESS_SYSTEM
						 : folder;

	address_own_folder(folder, sizeof(folder));
	if (where == folder && (rc == -EPERM || rc == -ENOTDIR))
		fprintf(stderr, "hearthd: %s is not a folder that is yours alone\n", folder);
	else if (rc == -ESRCH && options->job)
		fprintf(stderr, "hearthd: the job's process %d is gone\n", (int)options->job);
	else if (settings->socket && address_setting_fault(settings->socket))
		fprintf(stderr, "hearthd: HEARTH_SOCKET=%s is %s\n", settings->socket,
			address_setting_fault(settings->socket));
	else
		fprintf(stderr, "hearthd: cannot serve at %s: %s\n", where, strerror(-rc));
	return EXIT_FAILURE;
}

/* Tells our parent that the socket is served, and lets go of the caller's stdio. */
static void be_ready(int ready)
{
	if (ready < 0)
		return;
	if (write(ready, "", 1) < 0 || process_silence(false))
		log_error("cannot detach: %s", strerror(errno));
	close(ready);
}

/* The broker's life. `ready` is where to say that it serves; -1 in the foreground. */
static int live(const struct broker_options *options, const struct settings *settings, int ready)
{
	struct broker *broker;
	int rc = broker_open(options, settings, &broker);

	if (rc < 0)
		return say_failure(options, settings, rc);
	be_ready(ready);
	if (rc == BROKER_RUNNING)
		return EXIT_SUCCESS;
	rc = broker_run(broker);
	broker_close(broker);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* In the parent: 0 once the child serves, else the child's own words are on stderr already. */
static int wait_until_ready(int ready)
{
	char byte;
	ssize_t got;

	do {
		got = read(ready, &byte, 1);
	} while (got < 0 && errno == EINTR);
	return got == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int detach(const struct broker_options *options, const struct settings *settings)
{
	int ready[2];
	pid_t child;

	if (pipe2(ready, O_CLOEXEC) < 0 || (child = fork()) < 0) {
		fprintf(stderr, "hearthd: cannot detach: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	if (child) {
		close(ready[1]);
		return wait_until_ready(ready[0]);
	}
	close(ready[0]);
	setsid();
	return live(options, settings, ready[1]);
}

int hearthd_serve(
	const struct broker_options *options, const struct settings *settings, bool is_foreground)
{
	/* A descriptor below 3 that is closed would be taken by the first thing we open. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return EXIT_FAILURE;
	process_close_from(STDERR_FILENO + 1);
	process_reset_signals();
	umask(0077);
	if (chdir("/") < 0)
		return EXIT_FAILURE;
	return is_foreground ? live(options, settings, -1) : detach(options, settings);
}
