/* The slot table, on hearthd's main thread. A client's memory is its own: nothing read from its
 * page decides what the broker does. */
#include "broker/client.h"

#include "base/clock.h"
#include "base/log.h"
#include "broker/broker.h"
#include "broker/run.h"
#include "region/segment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int find_slot(const struct broker *broker, uid_t uid, uint32_t *ret_slot)
{
	uint32_t of_user = 0;

	for (const struct client *client = broker->clients; client; client = client->next)
		of_user += client->peer.uid == uid;
	if (of_user >= CLIENT_MAX_PER_USER)
		return -EAGAIN;
	for (uint32_t i = 0; i < CLIENT_MAX; i++) {
		if (!broker->slots[i]) {
			*ret_slot = i + 1;
			return 0;
		}
	}
	return -EAGAIN;
}

/* The page: ours to read, the program's to write. Few system calls, since hundreds of programs may
 * wait for theirs at once. */
static int make_page(uint32_t slot, const struct hearth_page **ret_page, int *ret_fd)
{
	void *memory = NULL;
	int fd = -1, rc = segment_create("hearth-page", sizeof(struct hearth_page), &fd);

	if (rc)
		return rc;
	rc = segment_init_page_file(fd, slot);
	if (!rc)
		rc = segment_seal(fd, false);
	if (!rc)
		rc = segment_map(fd, sizeof(struct hearth_page), false, &memory);
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_page = memory;
	*ret_fd = fd;
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

	segment_unmap(client->page, sizeof(*client->page));
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

/* The same living process again: it has called exec, or joined anew. */
static void remove_former(struct broker *broker, pid_t pid)
{
	struct client *client = broker->clients;

	while (client && pid > 0) {
		struct client *next = client->next;

		if (client->peer.pid == pid)
			client_remove(client, true);
		client = next;
	}
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
	const struct wire_message *hello, struct client **ret_client, int *ret_page_fd)
{
	struct client *client;
	int page_fd = -1, rc;

	remove_former(broker, peer->pid);
	client = calloc(1, sizeof(*client));
	if (!client) {
		close(pidfd);
		return -ENOMEM;
	}
	client->broker = broker;
	client->peer = *peer;
	client->start_realtime_us = hello->start_realtime_us;
	copy_printable(client->program, hello->program, sizeof(client->program));
	copy_printable(client->task, hello->task, sizeof(client->task));
	client->source = (struct source){
		.fd = pidfd, .on_ready = on_exit_of_process, .on_gone = free_client};
	rc = find_slot(broker, peer->uid, &client->slot);
	if (!rc)
		rc = make_page(client->slot, &client->page, &page_fd);
	if (!rc) {
		rc = loop_add(&broker->loop, &client->source, EPOLLIN);
		if (rc)
			close(page_fd);
	}
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
	set_count(broker, 1);
	*ret_client = client;
	*ret_page_fd = page_fd;
	return 0;
}
