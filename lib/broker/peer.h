/* Peers: connections that have not been answered yet. Each may hold a bounded time and one packet.
 */
#pragma once

#include <stdint.h>

struct broker;

#define PEER_MAX 2048
#define PEER_MAX_PER_USER 256

/* Takes every connection that waits at the listener. */
void peer_accept(struct broker *broker);

/* Ends the connections that have had their time, and answers those that wait for something that has
 * come. */
void peer_tick(struct broker *broker, uint64_t now_us);

/* The next moment at which peer_tick has something to do; 0 = none. */
uint64_t peer_deadline(const struct broker *broker);

void peer_remove_all(struct broker *broker);
