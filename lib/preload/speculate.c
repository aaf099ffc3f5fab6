/* When the speculative thread starts, and what it is told. Runs on the program's threads, in the
 * constructor or at a lookup of cuInit, which may be inside the loader: it must not open the driver
 * and wait for nobody. */
#include "preload/speculate.h"

#include "base/at_start.h"
#include "base/env.h"
#include "base/env_copy.h"
#include "base/log.h"
#include "driver/locate.h"
#include "driver/quiet.h"
#include "preload/ahead.h"
#include "preload/around.h"
#include "preload/claim.h"
#include "preload/client.h"
#include "preload/give_way.h"
#include "preload/observe.h"
#include "preload/read_ahead.h"
#include "preload/route.h"
#include "preload/situation.h"
#include "preload/spare.h"
#include "preload/speculation.h"
#include "preload/start.h"
#include "preload/threads.h"

#include <errno.h>
#include <unistd.h>

static struct situation situation;
AT_START_DATA static struct start_decision decision;
static struct ahead_plan plan = {.situation = &situation, .decision = &decision};
/* DONE: `decision` is there, and stays. */
enum { DECIDED_NOT, DECIDED_BEGUN, DECIDED_DONE };
AT_START_DATA static uint32_t decided;
AT_START_DATA static bool is_ready;      /* the constructor has run */
AT_START_DATA static bool was_looked_up; /* before that */
static uint32_t is_started;

/* On the program's thread. Nothing is begun where the thread cannot be had. */
static void start_thread(void)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(
		    &is_started, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
		quiet_snapshot() || !route_locate(NULL))
		return;
	plan.rank = decide_rank_of_environment();
	speculation.pid = getpid();
	claim_note_process();
	give_way_prepare();
	speculation_write(&speculation.phase, PHASE_STARTED);
	around_begin();
	spare_note(SPARE_AHEAD_BEGUN, -1);
	if (threads_start(ahead_run, &plan)) {
		speculation_write(&speculation.phase, PHASE_ENDED);
		spare_note(SPARE_AHEAD_NOTHING, -1);
	}
}

/* Once: what to do, and whether that is to begin now. A thread that comes while another decides
 * leaves it to that one. */
static void decide(void)
{
	struct locate_request request = {.driver = start_settings()->driver};
	char path[PATH_MAX];

	uint32_t not = DECIDED_NOT;

	if (!__atomic_compare_exchange_n(
		    &decided, &not, DECIDED_BEGUN, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		!situation_has_cause() || locate_driver(&request, path) ||
		situation_read(path, &situation))
		return;
	decide_start(&situation, &decision);
	log_debug("speculation: %s", decision.reason);
	__atomic_store_n(&decided, DECIDED_DONE, __ATOMIC_RELEASE);
}

static bool is_to_begin(void)
{
	return __atomic_load_n(&decided, __ATOMIC_ACQUIRE) == DECIDED_DONE &&
	       decision.what != DECIDE_NOTHING;
}

void speculate_begin(int argc, char **argv)
{
	if (start_is_off() || start_settings()->speculate == SPECULATE_OFF)
		return;
	spare_begin();
	observe_begin();
	is_ready = true;
	if (situation_begin(argc, argv)) {
		decide();
		if (is_to_begin() && decision.moment == DECIDE_AT_START)
			start_thread();
	}
	read_ahead_begin();
	if (was_looked_up)
		speculate_looked_up();
}

/* Another thread of the program may be changing the environment: it is copied once, and the copy is
 * what Hearth reads from then on. False where another lookup does so, or no copy can be had. */
static bool copy_environment(struct env_copy *ret_copy)
{
	static uint32_t is_begun;
	uint32_t no = 0;

	if (!__atomic_compare_exchange_n(
		    &is_begun, &no, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
		env_copy_take(ret_copy))
		return false;
	env_use(ret_copy->entries);
	return true;
}

void speculate_looked_up(void)
{
	int kept = errno;
	struct env_copy copy;
	bool is_first;

	if (!is_ready) {
		was_looked_up = true;
		return;
	}
	client_note_lookup();
	is_first = copy_environment(&copy);
	if (speculation_read(&speculation.phase) == PHASE_NONE)
		decide();
	if (is_to_begin())
		start_thread();
	/* Last, so that what this took is not taken for the program's lead. */
	if (is_first)
		observe_lookup(copy.entries);
	errno = kept;
}
