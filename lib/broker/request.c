/* What peers ask for, and its answer, on hearthd's main thread. Nothing here waits: what takes its
 * time is looked at again. */
#include "broker/request.h"

#include "base/clock.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/status.h"
#include "region/segment.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif
#define ANSWER_US 15000000 /* for the keeper to go, for the driver's file to be copied */
#define DEFAULT_RELEASE_S 60

static void answer(
	struct peer *peer, const struct wire_message *message, const int *fds, size_t fd_count)
{
	wire_send(peer->source.fd, message, fds, fd_count);
	peer_remove(peer);
}

void request_refuse(struct peer *peer, int rc)
{
	struct wire_message message;

	wire_init(&message, WIRE_REFUSED);
	message.code = -rc;
	log_debug("refused uid %u, pid %d: %s", peer->cred.uid, peer->cred.pid, strerror(-rc));
	answer(peer, &message, NULL, 0);
}

static void answer_done(struct peer *peer)
{
	struct wire_message message;

	wire_init(&message, WIRE_DONE);
	answer(peer, &message, NULL, 0);
}

static bool has_hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* SO_PEERPIDFD is exact; the other way is too while its connection stands, since a process whose
 * pid is used anew has closed it. */
static int open_pidfd(struct peer *peer, int *ret_pidfd)
{
	socklen_t size = sizeof(*ret_pidfd);

	if (!getsockopt(peer->source.fd, SOL_SOCKET, SO_PEERPIDFD, ret_pidfd, &size))
		return 0;
	if (peer->cred.pid <= 0)
		return -ESRCH;
	*ret_pidfd = (int)syscall(SYS_pidfd_open, peer->cred.pid, 0);
	if (*ret_pidfd < 0)
		return -errno;
	if (has_hung_up(peer->source.fd)) {
		close(*ret_pidfd);
		return -ESRCH;
	}
	return 0;
}

static int make_client(
	struct peer *peer, const struct wire_message *hello, struct client **ret_client)
{
	int pidfd = -1, rc = open_pidfd(peer, &pidfd);

	return rc ? rc : client_join(peer->broker, &peer->cred, pidfd, hello, ret_client);
}

static void on_hello(struct peer *peer, const struct wire_message *hello)
{
	struct broker *broker = peer->broker;
	struct wire_message welcome;
	struct client *client;
	int rc = make_client(peer, hello, &client);

	if (peer_is_out_of_descriptors(rc) && peer_free_descriptors(broker))
		rc = make_client(peer, hello, &client);
	if (rc) {
		request_refuse(peer, rc);
		return;
	}
	wire_init(&welcome, WIRE_WELCOME);
	welcome.size = sizeof(struct hearth_region);
	welcome.slot = client->slot;
	rc = wire_send(peer->source.fd, &welcome, (int[]){broker->region_fd, client->page_fd}, 2);
	if (rc) /* it has given up by now */
		client_remove(client, false);
	peer_part(peer);
}

static void on_status(struct peer *peer)
{
	struct wire_message text;
	uint64_t size;
	int fd = -1, rc = status_make(peer->broker, peer->cred.uid, &fd, &size);

	prover_look_again(&peer->broker->prover);
	if (rc) {
		request_refuse(peer, rc);
		return;
	}
	wire_init(&text, WIRE_TEXT);
	text.size = size;
	answer(peer, &text, &fd, 1);
	close(fd);
}

static void wait_for(struct peer *peer, enum wait what)
{
	peer->waits_for = what;
	peer->deadline_us = clock_monotonic_us() + ANSWER_US;
}

static void on_release(struct peer *peer, const struct wire_message *message)
{
	uint64_t seconds = message->code == 1 ? 0
			   : message->size    ? message->size
					      : DEFAULT_RELEASE_S;

	/* A day is longer than anybody means. */
	if (seconds > 86400)
		seconds = 86400;
	prover_cancel(&peer->broker->prover);
	keeper_release(&peer->broker->keeper, seconds,
		seconds ? "by `hearth release`, for a while"
			: "by `hearth release`, until `hearth release --resume`");
	wait_for(peer, WAIT_RELEASE);
}

/* Whoever may stop the broker by a signal may also tell it. */
static bool may_command(const struct peer *peer)
{
	return peer->cred.uid == 0 || peer->cred.uid == geteuid();
}

void request_serve(struct peer *peer, const struct wire_message *message)
{
	switch (message->type) {
	case WIRE_HELLO:
		on_hello(peer, message);
		return;
	case WIRE_STATUS:
		on_status(peer);
		return;
	case WIRE_DRIVER:
		memcpy(peer->build_id, message->build_id, sizeof(peer->build_id));
		wait_for(peer, WAIT_FILE);
		return;
	case WIRE_RELEASE:
	case WIRE_RESUME:
	case WIRE_STOP:
		break;
	default:
		request_refuse(peer, -EPROTO);
		return;
	}
	if (!may_command(peer)) {
		request_refuse(peer, -EPERM);
	} else if (message->type == WIRE_RELEASE) {
		on_release(peer, message);
	} else if (message->type == WIRE_RESUME) {
		keeper_resume(&peer->broker->keeper);
		answer_done(peer);
	} else {
		broker_leave(peer->broker, "it was told to stop");
		answer_done(peer);
	}
}

void request_look_again(struct peer *peer)
{
	struct wire_message message;
	uint64_t size;
	int fd, rc;

	if (peer->waits_for == WAIT_RELEASE && !peer->broker->keeper.pid &&
		!peer->broker->prover.pid) {
		answer_done(peer);
	} else if (peer->waits_for == WAIT_FILE) {
		rc = driver_files_get(&peer->broker->driver_files, peer->broker->keeper.driver_path,
			peer->build_id, &fd, &size);
		if (rc == DRIVER_FILE_LATER)
			return;
		if (rc) {
			request_refuse(peer, rc);
			return;
		}
		wire_init(&message, WIRE_FILE);
		message.size = size;
		answer(peer, &message, &fd, 1);
		close(fd);
	}
}
