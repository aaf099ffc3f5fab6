/* Unix sockets of type SOCK_SEQPACKET: one packet is one message, with descriptors beside it. Every
 * descriptor made or received has CLOEXEC; nothing raises SIGPIPE; whatever waits has a deadline,
 * an absolute clock_monotonic_us. Descriptors are the caller's to close. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Who is at the other end, as the kernel saw it at connect or listen (SO_PEERCRED, unix(7)). */
struct socket_peer {
	pid_t pid; /* in our pid namespace; 0 where it is not visible there */
	uid_t uid;
	gid_t gid;
};

/* Connects to `path`, waiting while the listener's backlog is full. 0 with a non-blocking socket,
 * or -errno: -ENOENT and -ECONNREFUSED where nobody listens, -ENAMETOOLONG, -ETIMEDOUT. */
int socket_connect(const char *path, uint64_t deadline_us, int *ret_fd);

/* Makes a listening, non-blocking socket at `path`, which must not exist. */
int socket_listen(const char *path, int *ret_fd);

int socket_peer(int fd, struct socket_peer *ret_peer);

/* Sends one packet without waiting: 0 or -errno (-EAGAIN where the peer does not read). */
int socket_send(int fd, const void *packet, size_t size, const int *fds, size_t fd_count);

/* Takes one packet that is already there. 0, with exactly `size` bytes; -EPROTO where it is of
 * another size or brings more than `max_fds` descriptors (all are closed then), -ECONNRESET at the
 * end of the connection, -EAGAIN. */
int socket_receive(
	int fd, void *ret_packet, size_t size, int *ret_fds, size_t max_fds, size_t *ret_fd_count);

/* Waits until something can be read: 0, -ETIMEDOUT, or -errno. Signals do not end the wait. */
int socket_wait(int fd, uint64_t deadline_us);

/* Closes every descriptor of the list and sets it to -1. errno is kept. */
void socket_close_all(int *fds, size_t count);
