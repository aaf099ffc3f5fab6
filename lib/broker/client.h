/* Clients: programs that said HELLO. Each has a slot, a page and a pidfd; it is a client until that
 * pidfd says that its process is gone, then its run is written and the slot is free. */
#pragma once

#include "base/socket.h"
#include "broker/loop.h"
#include "region/wire.h"

struct broker;

/* Limits on what programs can make the broker hold (a page of 32 KiB and two descriptors each). */
#define CLIENT_MAX 4096
#define CLIENT_MAX_PER_USER 1024

struct client {
	struct source source; /* the pidfd; watched from client_settle on */
	struct broker *broker;
	struct client *next, *previous;
	uint32_t slot; /* from 1 */
	struct socket_peer peer;
	char program[32];
	char task[64];
	uint64_t start_realtime_us; /* as the program says */
	int page_fd;
	uint64_t joined_us;
};

/* Makes a client of the peer: takes `pidfd` in every case. 0; -EAGAIN where a limit is reached; or
 * -errno. What the peer need not wait for is left to client_settle. */
int client_join(struct broker *broker, const struct socket_peer *peer, int pidfd,
	const struct wire_message *hello, struct client **ret_client);

/* Since when a client waits to be settled; 0 = none does. */
uint64_t client_unsettled_since(const struct broker *broker);

/* Begins to watch the processes of clients that are new, the oldest first, some in one go. */
void client_settle(struct broker *broker);

/* Forgets a client; `has_run` writes its run first. */
void client_remove(struct client *client, bool has_run);

/* Writes the runs of all clients as they are now and forgets them: for the broker's end. */
void client_remove_all(struct broker *broker);
