/* The slot table, on hearthd's main thread. A client's memory is its own: nothing read from its
 * page decides what the broker does. */
#include "broker/client.h"

#include "base/clock.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/run.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SETTLE_BATCH 64

/* Ends the former run of the same living process, which has called exec or joined anew, and finds a
 * slot. One walk: hundreds may wait. */
static int find_slot(struct broker *broker, const struct socket_peer *peer, uint32_t *ret_slot)
{
	struct client *client = broker->clients;
	uint32_t of_user = 0;
	const uint8_t *free_slot;

	while (client) {
		struct client *next = client->next;

		if (peer->pid > 0 && client->peer.pid == peer->pid)
			client_remove(client, true);
		else
			of_user += client->peer.uid == peer->uid;
		client = next;
	}
	free_slot = memchr(broker->slots, 0, CLIENT_MAX);
	if (of_user >= CLIENT_MAX_PER_USER || !free_slot)
		return -EAGAIN;
	*ret_slot = (uint32_t)(free_slot - broker->slots) + 1;
	return 0;
}

static void set_count(struct broker *broker, int change)
{
	__atomic_store_n(&broker->region->client_count,
		broker->region->client_count + (uint32_t)change, __ATOMIC_RELAXED);
}

static void free_client(struct source *source)
{
	struct client *client = (struct client *)source;

	if (client->page_fd >= 0)
		close(client->page_fd);
	free(client);
}

static void write_run(struct client *client)
{
	size_t length;
	char *line;
	int rc = run_line(client, clock_realtime_us(), &line, &length);

	if (!rc)
		history_add(
			client->broker->history, client->peer.uid, client->peer.gid, line, length);
	else if (rc < 0)
		log_error("cannot write the run of pid %d: %s", client->peer.pid, strerror(-rc));
}

void client_remove(struct client *client, bool has_run)
{
	struct broker *broker = client->broker;

	if (has_run)
		write_run(client);
	log_debug("slot %u is free: %s, pid %d", client->slot, client->program, client->peer.pid);
	broker->slots[client->slot - 1] = 0;
	if (broker->unsettled == client)
		broker->unsettled = client->previous;
	if (client->previous)
		client->previous->next = client->next;
	else
		broker->clients = client->next;
	if (client->next)
		client->next->previous = client->previous;
	set_count(broker, -1);
	broker->last_client_us = clock_monotonic_us();
	loop_remove(&broker->loop, &client->source);
}

void client_remove_all(struct broker *broker)
{
	while (broker->clients)
		client_remove(broker->clients, true);
}

static void on_exit_of_process(struct source *source, uint32_t events)
{
	client_remove((struct client *)source, true);
}

/* Names end up on terminals: nothing that a program calls itself may command them. */
static void copy_printable(char *ret_text, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		bool is_control = (unsigned char)text[i] < 0x20 || text[i] == 0x7f;

		ret_text[i] = text[i] && is_control ? '?' : text[i];
	}
}

int client_join(struct broker *broker, const struct socket_peer *peer, int pidfd,
	const struct wire_message *hello, struct client **ret_client)
{
	struct client *client = calloc(1, sizeof(*client));
	int rc;

	if (!client) {
		close(pidfd);
		return -ENOMEM;
	}
	client->broker = broker;
	client->peer = *peer;
	client->page_fd = -1;
	client->joined_us = clock_monotonic_us();
	client->start_realtime_us = hello->start_realtime_us;
	copy_printable(client->program, hello->program, sizeof(client->program));
	copy_printable(client->task, hello->task, sizeof(client->task));
	client->source = (struct source){
		.fd = pidfd, .on_ready = on_exit_of_process, .on_gone = free_client};
	rc = find_slot(broker, peer, &client->slot);
	if (!rc)
		rc = page_take(&broker->pages, &client->page_fd);
	if (rc) {
		close(pidfd);
		free_client(&client->source);
		return rc;
	}
	broker->slots[client->slot - 1] = 1;
	client->next = broker->clients;
	if (client->next)
		client->next->previous = client;
	broker->clients = client;
	if (!broker->unsettled)
		broker->unsettled = client;
	set_count(broker, 1);
	*ret_client = client;
	return 0;
}

uint64_t client_unsettled_since(const struct broker *broker)
{
	return broker->unsettled ? broker->unsettled->joined_us : 0;
}

void client_settle(struct broker *broker)
{
	for (int i = 0; i < SETTLE_BATCH && broker->unsettled; i++) {
		struct client *client = broker->unsettled;
		int rc = loop_add(&broker->loop, &client->source, EPOLLIN);

		/* Its end could not be seen; what it did so far is kept. */
		if (rc) {
			log_error("cannot watch pid %d: %s", client->peer.pid, strerror(-rc));
			client_remove(client, true);
		} else {
			broker->unsettled = client->previous;
		}
	}
}
