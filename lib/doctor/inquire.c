/* One question to another program. Runs in the hearth tool; must never wait longer than it was
 * told. */
#include "doctor/inquire.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Between the end of its output and its exit lie microseconds; a program that lingers is polled
 * for. */
#define REAP_EVERY_US 500

static _Noreturn void become(const char *const *words, int out)
{
	int nothing = open("/dev/null", O_RDWR);

	if (nothing >= 0 && dup2(nothing, 0) >= 0 && dup2(out, 1) >= 0 && dup2(nothing, 2) >= 0) {
		unsetenv("LD_PRELOAD");
		setpgid(0, 0); /* so that what it starts is killed with it */
		execv(words[0], (char *const *)(void *)words);
	}
	_exit(127);
}

/* Reads until the end of the output. Returns 0 or a negative errno. */
static int collect(int in, uint64_t deadline_us, char *ret_text, size_t size)
{
	size_t have = 0;

	for (;;) {
		struct pollfd poller = {.fd = in, .events = POLLIN};
		uint64_t now = clock_monotonic_us();
		char spill[512], *into = have < size - 1 ? ret_text + have : spill;
		size_t room = have < size - 1 ? size - 1 - have : sizeof(spill);
		ssize_t got;

		if (now >= deadline_us)
			return -ETIME;
		if (poll(&poller, 1, (int)((deadline_us - now) / 1000) + 1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!poller.revents)
			continue;
		got = read(in, into, room);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return 0;
		if (into != spill)
			have += (size_t)got;
		ret_text[have] = 0;
	}
}

int inquire(const char *const *words, int timeout_ms, char *ret_text, size_t size)
{
	uint64_t deadline = clock_monotonic_us() + (uint64_t)timeout_ms * 1000;
	int pipes[2], status = 0, rc;
	pid_t child;

	ret_text[0] = 0;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child < 0) {
		rc = -errno;
		close(pipes[0]);
		close(pipes[1]);
		return rc;
	}
	if (!child)
		become(words, pipes[1]);
	setpgid(child, child); /* here too: whichever comes first */
	close(pipes[1]);
	rc = collect(pipes[0], deadline, ret_text, size);
	close(pipes[0]);
	while (!rc && !waitpid(child, &status, WNOHANG)) {
		if (clock_monotonic_us() >= deadline)
			rc = -ETIME;
		usleep(REAP_EVERY_US);
	}
	if (rc) {
		kill(-child, SIGKILL);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		return rc;
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : 1;
}
