/* Packets between a client and what holds a spare. Runs in both; trusts nothing that it reads. */
#include "spare/packet.h"

#include "base/clock.h"
#include "base/socket.h"

#include <errno.h>
#include <string.h>

void packet_init(struct spare_message *ret_message, enum spare_what what, int value)
{
	memset(ret_message, 0, sizeof(*ret_message));
	ret_message->magic = SPARE_MAGIC;
	ret_message->version = SPARE_VERSION;
	ret_message->what = what;
	ret_message->value = value;
}

int packet_send(int fd, const struct spare_message *message, const int *fds, size_t fd_count)
{
	return socket_send(fd, message, sizeof(*message), fds, fd_count);
}

int packet_tell(int fd, enum spare_what what, int value)
{
	struct spare_message message;

	packet_init(&message, what, value);
	return packet_send(fd, &message, NULL, 0);
}

int packet_receive(int fd, uint64_t limit_us, struct spare_message *ret_message, int *ret_fds,
	size_t max_fds, size_t *ret_fd_count)
{
	uint64_t deadline_us = clock_monotonic_us() + limit_us;
	size_t count = 0;
	int rc;

	do {
		rc = socket_wait(fd, deadline_us);
		if (!rc)
			rc = socket_receive(
				fd, ret_message, sizeof(*ret_message), ret_fds, max_fds, &count);
	} while (rc == -EAGAIN);
	if (rc)
		return rc;
	if (ret_message->magic != SPARE_MAGIC || ret_message->version != SPARE_VERSION) {
		socket_close_all(ret_fds, count);
		return -EPROTO;
	}
	ret_message->text[SPARE_TEXT - 1] = '\0';
	if (ret_fd_count)
		*ret_fd_count = count;
	return 0;
}
