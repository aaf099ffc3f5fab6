/* Joining. Runs in the user's program on the thread of its first cuInit; waits at most as long as
 * join_broker does, and once per process. */
#include "preload/client.h"

#include "base/clock.h"
#include "base/env.h"
#include "preload/first_call.h"
#include "preload/program.h"
#include "preload/start.h"
#include "region/join.h"

#include <unistd.h>

static struct join joined;
static pid_t joined_by; /* 0 = nobody; a fork child finds its parent here */
static uint64_t lookup_us;

void client_note_lookup(void)
{
	uint64_t none = 0;

	__atomic_compare_exchange_n(&lookup_us, &none, clock_monotonic_us() - start_monotonic_us(),
		false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void client_join(void)
{
	pid_t self = getpid(), before = __atomic_load_n(&joined_by, __ATOMIC_ACQUIRE);
	char name[PROGRAM_NAME_SIZE];

	if (before == self || start_is_off() ||
		!__atomic_compare_exchange_n(
			&joined_by, &before, self, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	if (before) {
		first_call_forget();
		join_leave(&joined);
	}
	program_name(name);
	join_broker(start_settings(), name, start_realtime_us(), &joined);
	joined.page->lookup_us = __atomic_load_n(&lookup_us, __ATOMIC_RELAXED);
	joined.page->flags |= HEARTH_PAGE_USES_CUDA;
	if (env_get(ENV_CUDA_INJECTION64_PATH) || env_get(ENV_NVTX_INJECTION64_PATH))
		joined.page->flags |= HEARTH_PAGE_TOOL;
	first_call_set_page(joined.page);
}

bool client_is_warm(void)
{
	/* The page is published after `joined` is whole. */
	return first_call_has_page() && join_keeper_state(&joined) == HEARTH_KEEPER_WARM;
}

uint64_t client_keeper_init_us(void)
{
	return join_keeper_init_us(&joined);
}
