/* What every thread of the program has: its stack of current contexts and its capture mode.
 *
 * By a key and not a _Thread_local: a library that is opened late has such variables allocated by
 * the loader, out of the sanitizers' sight. Runs on the program's threads; takes no lock. */
#include "sim/sim.h"

#include <stdlib.h>

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;
/* For a thread that there is no memory for: it has no context and keeps none. */
static struct sim_thread none;

static void end_thread(void *thread)
{
	sim_init_touch_state();
	free(thread);
}

static void make_key(void)
{
	has_key = !pthread_key_create(&key, end_thread);
}

__attribute__((destructor)) static void drop_key(void)
{
	if (has_key)
		pthread_key_delete(key);
	has_key = false;
}

struct sim_thread *sim_thread(void)
{
	struct sim_thread *thread;

	pthread_once(&once, make_key);
	if (!has_key)
		return &none;
	thread = pthread_getspecific(key);
	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread || pthread_setspecific(key, thread)) {
		free(thread);
		return &none;
	}
	return thread;
}
