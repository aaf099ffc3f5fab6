/* The speculative thread. It is created with all signals blocked, does cuInit and makes the context
 * that the program is about to ask for, in the program's own process, and ends when that is taken
 * or given back and the program has called cuInit. It must never touch the live environment, and be
 * inside the loader only while is_loading says so. What it made is committed or undone by the
 * program's own calls (claim.c). */
#include "preload/speculate.h"

#include "base/at_start.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/env_copy.h"
#include "base/log.h"
#include "driver/locate.h"
#include "driver/quiet.h"
#include "driver/quiet_files.h"
#include "hearth/region.h"
#include "preload/claim.h"
#include "preload/client.h"
#include "preload/context.h"
#include "preload/gate.h"
#include "preload/observe.h"
#include "preload/situation.h"
#include "preload/speculation.h"
#include "preload/start.h"
#include "preload/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a fork waits for the thread to leave the loader, and an exit for it to leave the
 * driver. */
#define FORK_LIMIT_US 200000
#define EXIT_LIMIT_US 5000000
/* A program's thread that has the context in hand does not keep it longer. */
#define GRASP_LIMIT_US 100000
/* Until the program has called cuInit, it is looked so often whether it has ended but for us. */
#define WATCH_US 1000000

#define ATTRIBUTE_COMPUTE_MODE 20 /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */

static struct situation situation;
AT_START_DATA static struct start_decision decision;
/* DONE: `decision` is there, and stays. */
enum { DECIDED_NOT, DECIDED_BEGUN, DECIDED_DONE };
AT_START_DATA static uint32_t decided;
AT_START_DATA static bool is_ready;      /* the constructor has run */
AT_START_DATA static bool was_looked_up; /* before that */
static uint32_t is_started;
static int rank; /* the launcher's, read where the program could read it */

static bool is_open(void)
{
	return speculation_read(&speculation.verdict) == VERDICT_OPEN &&
	       !speculation_read(&speculation.is_leaving);
}

/* Nothing more is to be begun, and nothing kept. */
static bool is_over(void)
{
	return speculation_read(&speculation.is_leaving) ||
	       speculation_read(&speculation.is_abandoned) ||
	       speculation_read(&speculation.verdict) > VERDICT_COMMITTED;
}

/* False where a squash has begun meanwhile: then these may be the other copy's. */
static bool take_entries(void)
{
	static const enum driver_row create_rows[CREATE_VERSIONS] = {
		ROW_cuCtxCreate, ROW_cuCtxCreate_v2, ROW_cuCtxCreate_v3, ROW_cuCtxCreate_v4};
	struct speculation_driver *driver = &speculation.driver;

#define TAKE(member, symbol) driver->member = (__typeof__(driver->member))route_real(ROW_##symbol)
	TAKE(init, cuInit);
	TAKE(count, cuDeviceGetCount);
	TAKE(attribute, cuDeviceGetAttribute);
	TAKE(retain, cuDevicePrimaryCtxRetain);
	TAKE(release, cuDevicePrimaryCtxRelease_v2);
	TAKE(set_flags, cuDevicePrimaryCtxSetFlags_v2);
	TAKE(set_current, cuCtxSetCurrent);
	TAKE(memory, cuMemGetInfo_v2);
	TAKE(pop, cuCtxPopCurrent_v2);
	TAKE(destroy, cuCtxDestroy_v2);
#undef TAKE
	for (int i = 0; i < CREATE_VERSIONS; i++)
		driver->create[i] = route_has(create_rows[i]) ? route_real(create_rows[i]) : 0;
	return !speculation_read(&speculation.is_abandoned);
}

/* Opens the driver, as the program's first call would have, with its imports redirected. */
static bool open_driver(void)
{
	struct driver_copy copy;
	int error;

	speculation_write(&speculation.is_loading, 1);
	gate_close();
	error = route_open(NULL);
	if (!error) {
		copy.map = (struct link_map *)(uintptr_t)route_driver_map();
		copy.handle = copy.map;
		if (take_entries()) {
			gate_close();
			error = quiet_prepare(&copy);
		} else {
			error = -ECANCELED;
		}
	}
	speculation_write(&speculation.is_loading, 0);
	if (error)
		log_error("speculation: %s", strerror(-error));
	return !error;
}

static void make_init(void)
{
	uint64_t start_us = clock_monotonic_us();

	quiet_begin(QUIET_INIT);
	speculation.init_rc = speculation.driver.init(0);
	quiet_end();
	speculation.init_us = clock_monotonic_us() - start_us;
	log_debug("speculation: cuInit %d after %llu us", speculation.init_rc,
		(unsigned long long)speculation.init_us);
}

static bool choose_device(struct device_decision *ret_decision)
{
	struct device_state devices[HEARTH_MAX_DEVICES] = {0};
	int count, mode;

	if (decision.what != DECIDE_CONTEXT || speculation.driver.count(&count) || count < 1)
		return false;
	if (count > (int)HEARTH_MAX_DEVICES)
		count = HEARTH_MAX_DEVICES;
	for (int i = 0; i < count; i++)
		if (!speculation.driver.attribute(&mode, ATTRIBUTE_COMPUTE_MODE, i))
			devices[i].compute_mode = (uint32_t)mode;
	decide_device(&situation, count, rank, devices, ret_decision);
	log_debug("speculation: device %d: %s", ret_decision->device, ret_decision->reason);
	return ret_decision->device >= 0 && ret_decision->context_count;
}

/* Free memory is known only inside a context; one without room is not kept. */
static bool has_room(void)
{
	struct device_state device = {.is_memory_known = true};
	size_t free_bytes, total;

	if (speculation.driver.set_current(speculation.handle) ||
		speculation.driver.memory(&free_bytes, &total))
		return false;
	speculation.driver.set_current(NULL);
	device.free_bytes = free_bytes;
	device.total_bytes = total;
	return !decide_room(&device);
}

static CUresult make_primary(const struct profile_context *wanted)
{
	CUresult rc = CUDA_SUCCESS;

	if (wanted->flags)
		rc = speculation.driver.set_flags(wanted->device, wanted->flags);
	if (!rc)
		rc = speculation.driver.retain(&speculation.handle, wanted->device);
	if (rc && wanted->flags)
		speculation.driver.set_flags(wanted->device, 0);
	return rc;
}

/* Exactly the context that the program makes, popped again from this thread. */
static CUresult make_created(const struct profile_context *wanted)
{
	bool is_known = wanted->version >= 1 && wanted->version <= CREATE_VERSIONS;
	CUresult rc = context_create(is_known ? speculation.driver.create[wanted->version - 1] : 0,
		wanted->version, &speculation.handle, wanted->flags, wanted->device);
	CUcontext popped;

	return rc ? rc : speculation.driver.pop(&popped);
}

static void make_context(const struct profile_context *wanted, bool must_check_memory)
{
	uint64_t start_us = clock_monotonic_us();

	speculation.wanted = *wanted;
	if (!speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_BUSY))
		return;
	quiet_begin(QUIET_CONTEXT);
	speculation.context_rc =
		wanted->kind == PROFILE_PRIMARY ? make_primary(wanted) : make_created(wanted);
	if (!speculation.context_rc && must_check_memory && !has_room()) {
		log_info("speculation: no room on device %d", wanted->device);
		claim_release();
		speculation.context_rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	quiet_end();
	speculation.context_us = clock_monotonic_us() - start_us;
	log_debug("speculation: context on device %d: %d after %llu us", wanted->device,
		speculation.context_rc, (unsigned long long)speculation.context_us);
	speculation_write(
		&speculation.context, speculation.context_rc ? CONTEXT_GIVEN_UP : CONTEXT_HELD);
}

/* A program whose main thread ends by itself goes on until its last thread ends, and libc then
 * calls exit. The driver's threads, which it would not have by itself, do not count: so this does.
 */
static void end_if_last(void)
{
	if (is_open() && threads_are_last(1 + quiet_thread_count()))
		exit(EXIT_SUCCESS);
}

static bool give_up(void)
{
	bool was_held;

	quiet_begin(QUIET_CONTEXT);
	was_held = claim_give_up();
	quiet_end();
	return was_held;
}

/* Nobody asked in time. */
static void give_back(void)
{
	uint64_t end_us = clock_monotonic_us() + decision.give_back_us, now_us, left_us;
	uint32_t context;

	for (;;) {
		now_us = clock_monotonic_us();
		context = speculation_read(&speculation.context);
		if ((context != CONTEXT_HELD && context != CONTEXT_BUSY) ||
			speculation_read(&speculation.is_leaving))
			return;
		if (now_us >= end_us && context == CONTEXT_HELD)
			break;
		left_us = now_us < end_us ? end_us - now_us : GRASP_LIMIT_US;
		speculation_wait(
			&speculation.context, context, left_us < WATCH_US ? left_us : WATCH_US);
		end_if_last();
	}
	if (give_up())
		log_info("speculation: the context on device %d is given back",
			speculation.wanted.device);
}

static void speculate(void)
{
	struct device_decision device = {.device = -1};
	bool is_chosen;

	speculation.what = decision.what;
	speculation_write(&speculation.phase, PHASE_INIT);
	if (!is_open())
		return;
	if (!open_driver()) {
		speculation.init_rc = CUDA_ERROR_NOT_FOUND;
		gate_open();
		return;
	}
	make_init();
	speculation_write(&speculation.phase, PHASE_INIT_DONE);
	if (speculation.init_rc || is_over())
		return;
	quiet_begin(QUIET_CONTEXT);
	is_chosen = choose_device(&device);
	quiet_end();
	if (!is_chosen)
		return;
	speculation_write(&speculation.phase, PHASE_CONTEXT);
	make_context(&device.contexts[0], device.must_check_memory);
	if (is_over())
		give_up();
	give_back();
}

static void *run(void *unused)
{
	speculate();
	speculation_write(&speculation.phase, PHASE_ENDED);
	while (is_open()) {
		speculation_wait(&speculation.verdict, VERDICT_OPEN, WATCH_US);
		end_if_last();
	}
	return NULL;
}

static void before_fork(void)
{
	if (!speculation_is_ours())
		return;
	speculation_wait(&speculation.is_loading, 1, FORK_LIMIT_US);
	quiet_files_before_fork();
}

static void after_fork(void)
{
	if (speculation_is_ours())
		quiet_files_after_fork(false);
}

/* Natively this child would have none of what only the speculation opened. */
static void in_fork_child(void)
{
	uint32_t verdict = speculation_read(&speculation.verdict);

	if (speculation_read(&speculation.phase) < PHASE_INIT)
		return;
	quiet_files_after_fork(true);
	if (verdict == VERDICT_OPEN || verdict == VERDICT_SQUASHED)
		quiet_files_close(QUIET_INIT);
	else if (verdict == VERDICT_COMMITTED &&
		 speculation_read(&speculation.context) != CONTEXT_TAKEN)
		quiet_files_close(QUIET_CONTEXT);
}

static void at_exit(void *unused)
{
	if (!speculation_is_ours())
		return;
	speculation_write(&speculation.is_leaving, 1);
	if (speculation_read(&speculation.phase) == PHASE_INIT)
		speculation_wait(&speculation.phase, PHASE_INIT, EXIT_LIMIT_US);
	speculation_wait(&speculation.context, CONTEXT_BUSY, EXIT_LIMIT_US);
}

/* On the program's thread. Nothing is begun where the thread cannot be had. */
static void start_thread(void)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(
		    &is_started, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
		quiet_snapshot() || !route_locate(NULL))
		return;
	rank = decide_rank_of_environment();
	speculation.pid = getpid();
	claim_note_process();
	speculation_write(&speculation.phase, PHASE_STARTED);
	threads_at_fork(before_fork, after_fork, in_fork_child);
	threads_at_exit(at_exit);
	if (threads_start(run))
		speculation_write(&speculation.phase, PHASE_ENDED);
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
	observe_begin();
	is_ready = true;
	if (situation_begin(argc, argv)) {
		decide();
		if (is_to_begin() && decision.moment == DECIDE_AT_START)
			start_thread();
	}
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
