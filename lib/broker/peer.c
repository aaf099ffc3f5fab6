/* Serving peers, on hearthd's main thread. Whatever a peer sends or does not send, it costs one
 * slot of a bounded list for a bounded time. */
#include "broker/peer.h"

#include "base/clock.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_US 1000000 /* for a peer to say what it wants */
#define PAUSE_US 50000     /* without accepting, where descriptors have run out */
#define ROUND 64           /* connections taken in one go */

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

void peer_remove(struct peer *peer)
{
	unlink_peer(peer);
	loop_remove(&peer->broker->loop, &peer->source);
}

/* The same, but the connection is closed when there is time for it. */
void peer_part(struct peer *peer)
{
	struct broker *broker = peer->broker;

	unlink_peer(peer);
	parted_add(&broker->parted, loop_part(&broker->loop, &peer->source));
}

bool peer_is_out_of_descriptors(int rc)
{
	return rc == -EMFILE || rc == -ENFILE;
}

/* Whether there are descriptors again where they have run out. */
bool peer_free_descriptors(struct broker *broker)
{
	bool had_parted = parted_close_all(&broker->parted);

	return page_pool_drop(&broker->pages, clock_monotonic_us()) || had_parted;
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
		peer_remove(peer);
		return;
	}
	request_serve(peer, &message);
	if (!source->is_gone && peer->waits_for != WAIT_REQUEST)
		request_look_again(peer);
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
		peer_remove(peer);
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
		(peer_is_out_of_descriptors(rc) && peer_free_descriptors(broker)))
		return 0;
	if (peer_is_out_of_descriptors(rc) || rc == -ENOBUFS || rc == -ENOMEM) {
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
			request_look_again(peer);
		else if (peer->waits_for == WAIT_REQUEST)
			peer_remove(peer);
		else
			request_refuse(peer, -ETIMEDOUT);
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
		peer_remove(broker->peers);
	peer_free_descriptors(broker);
}
