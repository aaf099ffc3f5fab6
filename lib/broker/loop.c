/* The event loop of hearthd, on its main thread. Handlers must not block. */
#include "broker/loop.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#define BATCH 64

int loop_open(struct loop *ret_loop)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0)
		return -errno;
	*ret_loop = (struct loop){.epoll = epoll};
	return 0;
}

static void bury(struct loop *loop)
{
	while (loop->gone) {
		struct source *source = loop->gone;

		loop->gone = source->next_gone;
		if (source->on_gone)
			source->on_gone(source);
	}
}

void loop_close(struct loop *loop)
{
	bury(loop);
	if (loop->epoll >= 0)
		close(loop->epoll);
	loop->epoll = -1;
}

static int control(struct loop *loop, int operation, struct source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(loop->epoll, operation, source->fd, &event) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct source *source, uint32_t events)
{
	int rc = control(loop, EPOLL_CTL_ADD, source, events);

	source->is_watched = !rc;
	return rc;
}

int loop_change(struct loop *loop, struct source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, source, events);
}

int loop_part(struct loop *loop, struct source *source)
{
	int fd = source->fd;

	if (source->is_gone)
		return -1;
	if (fd >= 0 && source->is_watched)
		control(loop, EPOLL_CTL_DEL, source, 0);
	source->fd = -1;
	source->is_gone = true;
	source->next_gone = loop->gone;
	loop->gone = source;
	return fd;
}

void loop_remove(struct loop *loop, struct source *source)
{
	int fd = loop_part(loop, source);

	if (fd >= 0)
		close(fd);
}

int loop_turn(struct loop *loop, int timeout_ms)
{
	struct epoll_event events[BATCH];
	int count = epoll_wait(loop->epoll, events, BATCH, timeout_ms);

	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < count; i++) {
		struct source *source = events[i].data.ptr;

		if (!source->is_gone)
			source->on_ready(source, events[i].events);
	}
	bury(loop);
	return count ? 0 : LOOP_IDLE;
}
