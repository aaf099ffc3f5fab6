/* Asking a broker. Runs in the tools. Treats the broker as hostile: a bounded wait, a bounded
 * answer. */
#include "launch/ask.h"

#include "base/clock.h"
#include "base/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 4,096 clients of 256 bytes each would fill it. */
#define MAX_TEXT (1u << 20)

static int connect_trusted(const char *path, uint64_t deadline_us, int *ret_fd)
{
	struct socket_peer peer;
	int fd, rc = socket_connect(path, deadline_us, &fd);

	if (rc)
		return rc;
	rc = socket_peer(fd, &peer);
	if (!rc && peer.uid != geteuid() && peer.uid != 0)
		rc = -EPERM;
	if (rc)
		close(fd);
	else
		*ret_fd = fd;
	return rc;
}

/* Is nobody there, as opposed to somebody who does not behave? */
static int is_nobody(int rc)
{
	return rc == -ENOENT || rc == -ECONNREFUSED || rc == -ENOTDIR || rc == -EACCES;
}

static int read_text(int fd, uint64_t size, struct ask_reply *reply)
{
	size_t length = 0;
	ssize_t got = 1;
	char *text;

	if (size > MAX_TEXT)
		return -EPROTO;
	text = malloc(size + 1);
	if (!text)
		return -ENOMEM;
	while (length < size && got > 0) {
		got = pread(fd, text + length, size - length, (off_t)length);
		length += got > 0 ? (size_t)got : 0;
	}
	if (length != size) {
		free(text);
		return -EPROTO;
	}
	text[length] = '\0';
	reply->text = text;
	reply->length = length;
	return 0;
}

static int exchange(
	int fd, const struct wire_message *message, uint64_t deadline_us, struct ask_reply *reply)
{
	int fds[WIRE_MAX_DESCRIPTORS];
	struct wire_message answer;
	size_t count = 0;
	int rc = wire_send(fd, message, NULL, 0);

	if (!rc)
		rc = socket_wait(fd, deadline_us);
	if (!rc)
		rc = wire_receive(fd, &answer, fds, &count);
	if (rc)
		return rc;
	if (answer.type == WIRE_REFUSED) {
		reply->code = answer.code;
		rc = ASK_REFUSED;
	} else if (answer.type == WIRE_TEXT && message->type == WIRE_STATUS && count == 1) {
		rc = read_text(fds[0], answer.size, reply);
	} else if (answer.type != WIRE_DONE) {
		rc = -EPROTO;
	}
	socket_close_all(fds, count);
	return rc;
}

int ask_broker(const struct settings *settings, const struct wire_message *message,
	struct ask_reply *ret_reply)
{
	uint64_t limit_us = message->type == WIRE_STATUS ? ASK_LIMIT_US : ASK_KEEPER_LIMIT_US;

	return ask_broker_within(settings, message, limit_us, ret_reply);
}

int ask_broker_within(const struct settings *settings, const struct wire_message *message,
	uint64_t limit_us, struct ask_reply *ret_reply)
{
	uint64_t deadline_us = clock_monotonic_us() + limit_us;
	struct address candidates[ADDRESS_CANDIDATES];
	size_t count = address_candidates(settings, candidates);
	struct ask_reply reply = {0};
	int rc = -ENOENT;

	for (size_t i = 0; i < count && is_nobody(rc); i++) {
		int fd;

		rc = connect_trusted(candidates[i].path, deadline_us, &fd);
		if (rc)
			continue;
		reply.address = candidates[i];
		rc = exchange(fd, message, deadline_us, &reply);
		close(fd);
	}
	if (is_nobody(rc)) {
		rc = -ENOENT;
		if (count)
			reply.address = candidates[0];
	}
	if (settings->socket && address_setting_fault(settings->socket))
		rc = ASK_NO_ADDRESS;
	*ret_reply = reply;
	return rc;
}
