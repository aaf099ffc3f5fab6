/* Ending MPS clients. Runs in the hearth tool. Signals a process only by a pidfd that was taken
 * while the server listed it, so that it is never another one of that pid. */
#include "mps/end.h"

#include "mps/daemon.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define US_PER_MS 1000
#define KILL_LIMIT_MS 5000

/* The server that has this client; 0: none. */
static pid_t find_server(const struct control *control, pid_t client, int *ret_rc)
{
	struct daemon_servers servers;

	*ret_rc = daemon_list(control, &servers);
	for (size_t i = 0; !*ret_rc && i < servers.count; i++)
		for (size_t j = 0; j < servers.items[i].client_count; j++)
			if (servers.items[i].clients[j] == client)
				return servers.items[i].pid;
	return 0;
}

static bool ends_within(int fd, int ms)
{
	struct pollfd end = {.fd = fd, .events = POLLIN};
	int rc;

	do
		rc = poll(&end, 1, ms);
	while (rc < 0 && errno == EINTR);
	return rc == 1;
}

int end_client(
	const struct control *control, pid_t client, uint64_t patience_us, enum end_way *ret_way)
{
	int fd = (int)syscall(SYS_pidfd_open, client, 0), rc;
	struct control_reply reply;
	pid_t server;

	if (fd < 0)
		return -errno;
	server = find_server(control, client, &rc);
	if (!server)
		rc = rc ? rc : -ESRCH;
	else
		rc = control_ask(
			control, &reply, "terminate_client %d %d", (int)server, (int)client);
	if (!rc) {
		*ret_way = END_TERMINATED;
		if (!ends_within(fd, (int)(patience_us / US_PER_MS))) {
			*ret_way = END_KILLED;
			if (syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0))
				rc = -errno;
			else if (!ends_within(fd, KILL_LIMIT_MS))
				rc = -ETIMEDOUT;
		}
	}
	close(fd);
	return rc;
}
