/* Unix sockets with descriptors. Runs in every process of Hearth, also in the user's program on the
 * thread that makes the first call: never waits past the caller's deadline, keeps no descriptor. */
#include "base/socket.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_FDS 4    /* descriptors that one packet may bring */
#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */

static int fill_address(const char *path, struct sockaddr_un *ret_address)
{
	size_t length = strlen(path);

	if (!length || length >= sizeof(ret_address->sun_path))
		return length ? -ENAMETOOLONG : -ENOENT;
	memset(ret_address, 0, sizeof(*ret_address));
	ret_address->sun_family = AF_UNIX;
	memcpy(ret_address->sun_path, path, length);
	return 0;
}

/* A full backlog shows as EAGAIN, and nothing says when it is full no more: looked at every half
 * millisecond (SO_SNDTIMEO would wait in the kernel, but in whole ticks of its clock). */
static int connect_until(int fd, const struct sockaddr_un *address, uint64_t deadline_us)
{
	const struct timespec pause = {.tv_nsec = 500000};

	for (;;) {
		if (!connect(fd, (const struct sockaddr *)address, sizeof(*address)))
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (clock_monotonic_us() >= deadline_us)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

int socket_connect(const char *path, uint64_t deadline_us, int *ret_fd)
{
	struct sockaddr_un address;
	int fd = -1, rc = fill_address(path, &address);

	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	rc = connect_until(fd, &address, deadline_us);
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int socket_listen(const char *path, int *ret_fd)
{
	struct sockaddr_un address;
	int fd = -1, rc = fill_address(path, &address);

	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
		listen(fd, BACKLOG) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int socket_peer(int fd, struct socket_peer *ret_peer)
{
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	if (size != sizeof(cred))
		return -EPROTO;
	*ret_peer = (struct socket_peer){.pid = cred.pid, .uid = cred.uid, .gid = cred.gid};
	return 0;
}

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * MAX_FDS)];
};

int socket_send(int fd, const void *packet, size_t size, const int *fds, size_t fd_count)
{
	struct iovec part = {.iov_base = (void *)packet, .iov_len = size};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
	union control control;

	if (fd_count > MAX_FDS)
		return -EINVAL;
	if (fd_count) {
		struct cmsghdr *head;

		memset(&control, 0, sizeof(control));
		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		head = CMSG_FIRSTHDR(&message);
		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(head), fds, sizeof(int) * fd_count);
	}
	for (;;) {
		ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent >= 0)
			return (size_t)sent == size ? 0 : -EPROTO;
		if (errno != EINTR)
			return -errno;
	}
}

void socket_close_all(int *fds, size_t count)
{
	int kept = errno;

	for (size_t i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
	errno = kept;
}

static size_t take_fds(struct msghdr *message, int fds[MAX_FDS])
{
	size_t count = 0;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head;
		head = CMSG_NXTHDR(message, head)) {
		size_t here;

		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		here = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < here && count < MAX_FDS; i++)
			memcpy(&fds[count++], CMSG_DATA(head) + i * sizeof(int), sizeof(int));
	}
	return count;
}

int socket_receive(
	int fd, void *ret_packet, size_t size, int *ret_fds, size_t max_fds, size_t *ret_fd_count)
{
	struct iovec part = {.iov_base = ret_packet, .iov_len = size};
	union control control;
	struct msghdr message = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	int fds[MAX_FDS];
	size_t count;
	ssize_t got;

	do {
		got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	count = take_fds(&message, fds);
	/* An empty packet and the end of the connection look the same: both end it. */
	if ((size_t)got != size || count > max_fds ||
		message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		socket_close_all(fds, count);
		return got ? -EPROTO : -ECONNRESET;
	}
	if (count)
		memcpy(ret_fds, fds, count * sizeof(int));
	*ret_fd_count = count;
	return 0;
}

int socket_wait(int fd, uint64_t deadline_us)
{
	struct pollfd entry = {.fd = fd, .events = POLLIN};

	for (;;) {
		uint64_t now = clock_monotonic_us();
		int rc;

		if (now >= deadline_us)
			return -ETIMEDOUT;
		rc = poll(&entry, 1, (int)((deadline_us - now + 999) / 1000));
		if (rc > 0)
			return 0;
		if (rc < 0 && errno != EINTR)
			return -errno;
	}
}
