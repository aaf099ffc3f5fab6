/* The program's side of the broker: one round trip, then no descriptor is left and the broker may
 * come and go. Whatever the other side does, joining ends within JOIN_LIMIT_US and leaves a page to
 * write to. */
#pragma once

#include "base/settings.h"
#include "hearth/region.h"

#include <stdbool.h>
#include <stdint.h>

#define JOIN_LIMIT_US 50000

struct join {
	struct hearth_page *page;           /* always valid: the broker's, else a private one */
	const struct hearth_region *region; /* NULL without a broker; read-only, broker-written */
	bool is_shared;                     /* the page is the broker's */
};

/* Finds a broker, says HELLO and maps what it answers with. `program` is a base name. Writes
 * page->start_realtime_us. Returns 0, or -errno that says why there is no broker (-ENOENT: none was
 * found); *ret_join is valid in both cases. errno is kept.
 *
 * One private page exists per process: at most one join is alive at a time. A fork child still has
 * its parent's page mapped, and must join anew (after join_leave) before it writes anything. */
int join_broker(const struct settings *settings, const char *program, uint64_t start_realtime_us,
	struct join *ret_join);

/* Connects to the first broker of ours or root's that listens. 0; -ENOENT where none does; -EPERM
 * where only somebody else's does; or -errno. */
int join_connect(const struct settings *settings, uint64_t deadline_us, int *ret_fd);

/* Unmaps what join_broker mapped. The broker sees nothing of it: a slot lives as long as its
 * process does. */
void join_leave(struct join *join);

/* The keeper's state now; HEARTH_KEEPER_OFF without a region or for a value that is none. */
enum hearth_keeper_state join_keeper_state(const struct join *join);

/* What the keeper's own cuInit took when nobody had the GPU warm; 0 = not known. */
uint64_t join_keeper_init_us(const struct join *join);
