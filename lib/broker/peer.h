/* Peers: connections that have not been answered yet. Each may hold a bounded time and one packet.
 */
#pragma once

#include "base/socket.h"
#include "broker/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct broker;

#define PEER_MAX 2048
#define PEER_MAX_PER_USER 256

enum wait { WAIT_REQUEST, WAIT_RELEASE, WAIT_FILE };

struct peer {
	struct source source;
	struct broker *broker;
	struct peer *next;
	struct socket_peer cred;
	enum wait waits_for;
	uint64_t deadline_us; /* then it is removed or refused */
	uint8_t build_id[32]; /* of the driver it wants */
};

/* Takes every connection that waits at the listener. */
void peer_accept(struct broker *broker);

/* Ends the connections that have had their time, and answers those that wait for something that has
 * come. */
void peer_tick(struct broker *broker, uint64_t now_us);

/* The next moment at which peer_tick has something to do; 0 = none. */
uint64_t peer_deadline(const struct broker *broker);

void peer_remove_all(struct broker *broker);

/* Closes the connection; and the same when there is time for it. */
void peer_remove(struct peer *peer);
void peer_part(struct peer *peer);

/* Does this negative errno say that descriptors have run out? And whether there are some again
 * after what is held in reserve has been given up. */
bool peer_is_out_of_descriptors(int rc);
bool peer_free_descriptors(struct broker *broker);
