/* One epoll loop, one thread. A source is embedded in whatever owns the descriptor; it may be
 * removed at any time, also from its own or another's handler: its memory is given back after the
 * batch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct source {
	int fd;
	void (*on_ready)(struct source *source, uint32_t events);
	void (*on_gone)(struct source *source); /* frees the owner; may be NULL */
	bool is_watched;
	bool is_gone;
	struct source *next_gone;
};

struct loop {
	int epoll;
	struct source *gone;
};

int loop_open(struct loop *ret_loop);
void loop_close(struct loop *loop);

/* Watches source->fd for `events` (EPOLLIN...). 0 or -errno. */
int loop_add(struct loop *loop, struct source *source, uint32_t events);
int loop_change(struct loop *loop, struct source *source, uint32_t events);

/* Stops watching, where it was watched; closes the descriptor. on_gone follows, never before the
 * running batch ends. */
void loop_remove(struct loop *loop, struct source *source);

/* Stops watching and leaves the descriptor, which is returned, to the caller. on_gone as above. */
int loop_part(struct loop *loop, struct source *source);

/* Waits at most timeout_ms (-1: for ever) and handles what is ready. 0, LOOP_IDLE where nothing
 * was, or -errno. */
#define LOOP_IDLE 1
int loop_turn(struct loop *loop, int timeout_ms);
