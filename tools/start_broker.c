/* Starting a broker on demand. Runs in the tools. Must never wait for the broker, and never leave a
 * child behind that the program's own wait() could find. */
#include "start_broker.h"

#include "base/clock.h"
#include "base/install.h"
#include "base/socket.h"
#include "region/address.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* A broker whose backlog is full is there. */
#define CONNECT_LIMIT_US 1000

static bool is_listening(const struct settings *settings)
{
	struct address candidates[ADDRESS_CANDIDATES];
	size_t count = address_candidates(settings, candidates);

	for (size_t i = 0; i < count; i++) {
		int fd, rc = socket_connect(
				candidates[i].path, clock_monotonic_us() + CONNECT_LIMIT_US, &fd);

		if (!rc)
			close(fd);
		if (!rc || rc == -ETIMEDOUT)
			return true;
	}
	return false;
}

void start_broker(const struct settings *settings)
{
	char path[PATH_MAX];
	pid_t pid;

	if (is_listening(settings) || install_find(INSTALL_BROKER, sizeof(path), path))
		return;
	pid = fork();
	if (!pid) {
		if (fork())
			_exit(0);
		execl(path, path, (char *)NULL);
		_exit(1);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
