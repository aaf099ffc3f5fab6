/* Answering to the driver's path. Begins on the speculative thread, while it may be in the loader,
 * or in a squash; ends on the program's threads. What the loader reads must stay as long as the
 * process. */
#include "preload/stand_in.h"

#include "base/log.h"
#include "driver/known_name.h"
#include "driver/loader.h"
#include "preload/route.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct full_map *self;
static struct known_name names[2]; /* the path that was opened, and where its links lead */
static size_t name_count;
static char resolved[PATH_MAX];

enum { OFF, CHANGING, ON };
static int state;

static bool change(int from, int to)
{
	return __atomic_compare_exchange_n(
		&state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* The first time; the path never changes. /proc/self/maps has no links in its paths. */
static void prepare(void)
{
	const char *path = route_driver_path();

	self = known_name_map(loader_map_of(&self));
	if (!self || !path)
		return;
	names[name_count++].text = path;
	if (realpath(path, resolved) && strcmp(path, resolved) != 0)
		names[name_count++].text = resolved;
}

void stand_in_begin(void)
{
	if (!change(OFF, CHANGING))
		return;
	if (!name_count)
		prepare();
	for (size_t i = 0; i < name_count; i++)
		known_name_add(self, &names[i]);
	if (!name_count)
		log_debug("the driver's path cannot be answered for here");
	__atomic_store_n(&state, ON, __ATOMIC_RELEASE);
}

void stand_in_end(void)
{
	if (!change(ON, CHANGING))
		return;
	for (size_t i = 0; i < name_count; i++)
		known_name_remove(self);
	__atomic_store_n(&state, OFF, __ATOMIC_RELEASE);
}
