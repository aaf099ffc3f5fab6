/* Serving peers, on hearthd's main thread. Whatever a peer sends or does not send, it costs one
 * slot of a bounded list for a bounded time. */
#include "broker/peer.h"

#include "base/clock.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/client.h"
#include "broker/status.h"
#include "region/segment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif
#define REQUEST_US 1000000 /* for a peer to say what it wants */
#define ANSWER_US 15000000 /* for the keeper to go, for the driver's file to be copied */
#define PAUSE_US 50000     /* without accepting, where descriptors have run out */
#define DEFAULT_RELEASE_S 60
#define ROUND 64 /* connections taken in one go */

enum wait { WAIT_REQUEST, WAIT_RELEASE, WAIT_FILE };

struct peer {
	struct source source;
	struct broker *broker;
	struct peer *next;
	struct socket_peer cred;
	enum wait waits_for;
	uint64_t deadline_us;
	uint8_t build_id[32];
};

static void free_peer(struct source *source)
{
	free(source);
}

static void unlink_peer(struct peer *peer)
{
	struct broker *broker = peer->broker;
	struct peer **at = &broker->peers;

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	broker->peer_count--;
}

static void remove_peer(struct peer *peer)
{
	unlink_peer(peer);
	loop_remove(&peer->broker->loop, &peer->source);
}

/* The same, but the connection is closed when there is time for it. */
static void part_with(struct peer *peer)
{
	struct broker *broker = peer->broker;

	unlink_peer(peer);
	parted_add(&broker->parted, loop_part(&broker->loop, &peer->source));
}

static bool is_out_of_descriptors(int rc)
{
	return rc == -EMFILE || rc == -ENFILE;
}

/* Whether there are descriptors again where they have run out. */
static bool free_descriptors(struct broker *broker)
{
	bool had_parted = parted_close_all(&broker->parted);

	return page_pool_drop(&broker->pages, clock_monotonic_us()) || had_parted;
}

static void answer(
	struct peer *peer, const struct wire_message *message, const int *fds, size_t fd_count)
{
	wire_send(peer->source.fd, message, fds, fd_count);
	remove_peer(peer);
}

static void refuse(struct peer *peer, int rc)
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

	if (is_out_of_descriptors(rc) && free_descriptors(broker))
		rc = make_client(peer, hello, &client);
	if (rc) {
		refuse(peer, rc);
		return;
	}
	wire_init(&welcome, WIRE_WELCOME);
	welcome.size = sizeof(struct hearth_region);
	welcome.slot = client->slot;
	rc = wire_send(peer->source.fd, &welcome, (int[]){broker->region_fd, client->page_fd}, 2);
	if (rc) /* it has given up by now */
		client_remove(client, false);
	part_with(peer);
}

static void on_status(struct peer *peer)
{
	struct wire_message text;
	uint64_t size;
	int fd = -1, rc = status_make(peer->broker, peer->cred.uid, &fd, &size);

	prover_look_again(&peer->broker->prover);
	if (rc) {
		refuse(peer, rc);
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
		seconds ? "let go on request, for a while" : "let go on request, until resumed");
	wait_for(peer, WAIT_RELEASE);
}

/* Whoever may stop the broker by a signal may also tell it. */
static bool may_command(const struct peer *peer)
{
	return peer->cred.uid == 0 || peer->cred.uid == geteuid();
}

static void on_request(struct peer *peer, const struct wire_message *message)
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
		refuse(peer, -EPROTO);
		return;
	}
	if (!may_command(peer)) {
		refuse(peer, -EPERM);
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

/* Answers a peer whose wait may be over. */
static void look_again(struct peer *peer)
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
			refuse(peer, rc);
			return;
		}
		wire_init(&message, WIRE_FILE);
		message.size = size;
		answer(peer, &message, &fd, 1);
		close(fd);
	}
}

static void on_ready(struct source *source, uint32_t events)
{
	struct peer *peer = (struct peer *)source;
	int fds[WIRE_MAX_DESCRIPTORS];
	struct wire_message message;
	size_t fd_count;
	int rc = wire_receive(source->fd, &message, fds, &fd_count);

	if (rc == -EAGAIN)
		return;
	/* Nobody sends us descriptors, or a second request. */
	if (!rc)
		socket_close_all(fds, fd_count);
	if (rc || fd_count || peer->waits_for != WAIT_REQUEST) {
		remove_peer(peer);
		return;
	}
	on_request(peer, &message);
	if (!source->is_gone && peer->waits_for != WAIT_REQUEST)
		look_again(peer);
}

static bool is_over_limit(const struct broker *broker, uid_t uid)
{
	uint32_t of_user = 0;

	for (const struct peer *peer = broker->peers; peer; peer = peer->next)
		of_user += peer->cred.uid == uid;
	return of_user >= PEER_MAX_PER_USER;
}

/* Serves a new connection if its request is there, as it mostly is; else returns it. */
static struct peer *add_peer(struct broker *broker, int fd)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (!peer || socket_peer(fd, &peer->cred) || is_over_limit(broker, peer->cred.uid)) {
		free(peer);
		close(fd);
		return NULL;
	}
	peer->broker = broker;
	peer->deadline_us = clock_monotonic_us() + REQUEST_US;
	peer->source = (struct source){.fd = fd, .on_ready = on_ready, .on_gone = free_peer};
	peer->next = broker->peers;
	broker->peers = peer;
	broker->peer_count++;
	on_ready(&peer->source, EPOLLIN);
	return peer->source.is_gone ? NULL : peer;
}

/* Looks once more, since a request follows its connection at once, before it bothers the loop. */
static void watch_peer(struct peer *peer)
{
	if (!peer->source.is_gone && peer->waits_for == WAIT_REQUEST)
		on_ready(&peer->source, EPOLLIN);
	if (!peer->source.is_gone && loop_add(&peer->broker->loop, &peer->source, EPOLLIN))
		remove_peer(peer);
}

/* Stops taking connections for a moment; those that come wait in the backlog. */
static void pause_listening(struct broker *broker)
{
	loop_change(&broker->loop, &broker->listener, 0);
	broker->listen_again_us = clock_monotonic_us() + PAUSE_US;
}

static void resume_listening(struct broker *broker)
{
	loop_change(&broker->loop, &broker->listener, EPOLLIN);
	broker->listen_again_us = 0;
}

/* The next connection: 0, with none where one was lost on its way; or -errno. */
static int take(struct broker *broker, int *ret_fd)
{
	int fd, rc;

	if (broker->peer_count >= PEER_MAX) {
		pause_listening(broker);
		return -EAGAIN;
	}
	fd = accept4(broker->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	rc = fd < 0 ? -errno : 0;
	*ret_fd = fd;
	if (rc == -EINTR || rc == -ECONNABORTED ||
		(is_out_of_descriptors(rc) && free_descriptors(broker)))
		return 0;
	if (is_out_of_descriptors(rc) || rc == -ENOBUFS || rc == -ENOMEM) {
		log_error("cannot take a connection: %s", strerror(-rc));
		pause_listening(broker);
	}
	return rc;
}

void peer_accept(struct broker *broker)
{
	struct peer *early[ROUND];
	size_t count = 0;
	int fd;

	for (int i = 0; i < ROUND && !take(broker, &fd); i++) {
		struct peer *peer = fd >= 0 ? add_peer(broker, fd) : NULL;

		if (peer)
			early[count++] = peer;
	}
	for (size_t i = 0; i < count; i++)
		watch_peer(early[i]);
}

void peer_tick(struct broker *broker, uint64_t now_us)
{
	struct peer *peer = broker->peers;

	while (peer) {
		struct peer *next = peer->next;

		if (now_us < peer->deadline_us)
			look_again(peer);
		else if (peer->waits_for == WAIT_REQUEST)
			remove_peer(peer);
		else
			refuse(peer, -ETIMEDOUT);
		peer = next;
	}
	if (broker->listen_again_us && now_us >= broker->listen_again_us)
		resume_listening(broker);
}

uint64_t peer_deadline(const struct broker *broker)
{
	uint64_t soonest = broker->listen_again_us;

	for (const struct peer *peer = broker->peers; peer; peer = peer->next)
		soonest = broker_sooner(soonest, peer->deadline_us);
	return soonest;
}

void peer_remove_all(struct broker *broker)
{
	while (broker->peers)
		remove_peer(broker->peers);
	free_descriptors(broker);
}
