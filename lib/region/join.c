/* Joining the broker. Runs in the user's program, on the thread of its first call, once per process
 * (again in a fork child). Never waits past JOIN_LIMIT_US in all, never trusts the other side,
 * keeps no descriptor, prints nothing. */
#include "region/join.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/socket.h"
#include "region/address.h"
#include "region/segment.h"
#include "region/wire.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Less than the limit by what mapping and a late timer can cost. */
#define WAIT_US (JOIN_LIMIT_US - 5000)

/* WELCOME's descriptors, in this order. */
enum { REGION_FD, PAGE_FD, FD_COUNT };

static struct hearth_page private_page;

/* Only our own broker, or the machine's, may tell us anything. */
static int check_peer(int fd)
{
	struct socket_peer peer;
	int rc = socket_peer(fd, &peer);

	if (rc)
		return rc;
	return peer.uid == 0 || peer.uid == geteuid() ? 0 : -EPERM;
}

static int map_both(const int fds[FD_COUNT], struct join *ret_join)
{
	const struct hearth_region *region;
	struct hearth_page *page;
	int rc = segment_map_region(fds[REGION_FD], &region);

	if (rc)
		return rc;
	rc = segment_map_page(fds[PAGE_FD], &page);
	if (rc) {
		segment_unmap(region, sizeof(*region));
		return rc;
	}
	*ret_join = (struct join){.page = page, .region = region, .is_shared = true};
	return 0;
}

static int receive_welcome(int fd, struct join *ret_join)
{
	struct wire_message welcome;
	int fds[WIRE_MAX_DESCRIPTORS];
	size_t count;
	int rc = wire_receive(fd, &welcome, fds, &count);

	if (rc)
		return rc;
	if (welcome.type == WIRE_REFUSED)
		rc = welcome.code > 0 ? -welcome.code : -EPROTO;
	else if (welcome.type != WIRE_WELCOME || count != FD_COUNT ||
		 welcome.size != sizeof(struct hearth_region))
		rc = -EPROTO;
	else
		rc = map_both(fds, ret_join);
	if (!rc)
		ret_join->page->slot = welcome.slot;
	socket_close_all(fds, count);
	return rc;
}

static int connect_at(const char *path, uint64_t deadline_us, int *ret_fd)
{
	int fd = -1, rc = socket_connect(path, deadline_us, &fd);

	if (rc)
		return rc;
	rc = check_peer(fd);
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int join_connect(const struct settings *settings, uint64_t deadline_us, int *ret_fd)
{
	struct address candidates[ADDRESS_CANDIDATES];
	size_t count = address_candidates(settings, candidates);
	int first_rc = -ENOENT;

	for (size_t i = 0; i < count; i++) {
		int rc = connect_at(candidates[i].path, deadline_us, ret_fd);

		log_debug("broker at %s: %s", candidates[i].path, rc ? strerror(-rc) : "is there");
		if (!rc)
			return 0;
		if (first_rc == -ENOENT)
			first_rc = rc;
	}
	return first_rc;
}

static int say_hello(
	const struct settings *settings, const struct wire_message *hello, struct join *ret_join)
{
	uint64_t deadline_us = clock_monotonic_us() + WAIT_US;
	int fd = -1, rc = join_connect(settings, deadline_us, &fd);

	if (rc)
		return rc;
	rc = wire_send(fd, hello, NULL, 0);
	if (!rc)
		rc = socket_wait(fd, deadline_us);
	if (!rc)
		rc = receive_welcome(fd, ret_join);
	close(fd);
	if (rc)
		log_debug("the broker gave no welcome: %s", strerror(-rc));
	return rc;
}

int join_broker(const struct settings *settings, const char *program, uint64_t start_realtime_us,
	struct join *ret_join)
{
	struct wire_message hello;
	int kept = errno;
	int rc;

	wire_init(&hello, WIRE_HELLO);
	hello.start_realtime_us = start_realtime_us;
	wire_copy_text(hello.program, sizeof(hello.program), program);
	wire_copy_text(hello.task, sizeof(hello.task), settings->task);
	rc = say_hello(settings, &hello, ret_join);
	if (rc) {
		memset(&private_page, 0, sizeof(private_page));
		segment_init_page(&private_page);
		*ret_join = (struct join){.page = &private_page};
	}
	ret_join->page->start_realtime_us = start_realtime_us;
	errno = kept;
	return rc;
}

void join_leave(struct join *join)
{
	if (join->is_shared)
		segment_unmap(join->page, sizeof(*join->page));
	segment_unmap(join->region, sizeof(*join->region));
	*join = (struct join){0};
}

enum hearth_keeper_state join_keeper_state(const struct join *join)
{
	uint32_t state = HEARTH_KEEPER_OFF;

	if (join->region)
		state = __atomic_load_n(&join->region->keeper_state, __ATOMIC_ACQUIRE);
	return state <= HEARTH_KEEPER_FAILED ? (enum hearth_keeper_state)state : HEARTH_KEEPER_OFF;
}

uint64_t join_keeper_init_us(const struct join *join)
{
	if (!join->region)
		return 0;
	return __atomic_load_n(&join->region->keeper_init_us, __ATOMIC_RELAXED);
}
