/* The speculative thread. It is created with all signals blocked, does cuInit, makes the context
 * that the program is about to ask for and loads into it what the program is about to load
 * (prefetch.c), in the program's own process. It ends when all of that is taken or given back and
 * the program has called cuInit. It must never touch the live environment, and be inside the loader
 * only while is_loading says so. What it made is committed or undone by the program's own calls
 * (claim.c). */
#include "preload/ahead.h"

#include "base/clock.h"
#include "base/log.h"
#include "driver/quiet.h"
#include "hearth/region.h"
#include "preload/around.h"
#include "preload/claim.h"
#include "preload/context.h"
#include "preload/gate.h"
#include "preload/give_way.h"
#include "preload/prefetch.h"
#include "preload/spare.h"
#include "preload/speculation.h"
#include "preload/stand_in.h"
#include "preload/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A program's thread that has the context in hand does not keep it longer. */
#define GRASP_LIMIT_US 100000
/* Until the program has called cuInit, it is looked so often whether it has ended but for us. */
#define WATCH_US 1000000

#define ATTRIBUTE_COMPUTE_MODE 20 /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */

static bool is_open(void)
{
	return speculation_read(&speculation.verdict) == VERDICT_OPEN &&
	       !speculation_read(&speculation.is_leaving);
}

static const struct ahead_plan *plan;

/* The thread goes into the driver, if it still may: its reads count for that stage. */
static bool enter(enum quiet_stage stage)
{
	if (!speculation_enter())
		return false;
	quiet_begin(stage);
	return true;
}

static void leave(void)
{
	quiet_end();
	speculation_leave();
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
	prefetch_take_entries();
	return !speculation_read(&speculation.is_abandoned);
}

/* Opens the driver, as the program's first call would have, with its imports redirected. */
static bool open_driver(void)
{
	struct driver_copy copy;
	int error;

	if (!speculation_enter())
		return false;
	speculation_write(&speculation.is_loading, 1);
	gate_close();
	error = route_is_open_elsewhere() ? -EALREADY : route_open(NULL);
	if (!error) {
		copy.map = (struct link_map *)(uintptr_t)route_driver_map();
		copy.handle = copy.map;
		if (take_entries()) {
			gate_close();
			error = quiet_prepare(&copy, around_leave);
			quiet_before_requests(give_way);
			if (!error)
				stand_in_begin();
		} else {
			error = -ECANCELED;
		}
	}
	speculation_write(&speculation.is_loading, 0);
	speculation_leave();
	if (error == -EALREADY)
		log_info("speculation: the program has opened %s itself", route_driver_path());
	else if (error)
		log_error("speculation: %s", strerror(-error));
	return !error;
}

/* What the driver takes, without what was slept so that others need not wait. */
static uint64_t now_awake_us(void)
{
	return clock_monotonic_us() - give_way_slept_us();
}

static bool make_init(void)
{
	uint64_t start_us = now_awake_us();

	if (!enter(QUIET_INIT))
		return false;
	speculation.init_rc = speculation.driver.init(0);
	leave();
	speculation.init_us = now_awake_us() - start_us;
	log_debug("speculation: cuInit %d after %llu us", speculation.init_rc,
		(unsigned long long)speculation.init_us);
	return !speculation.init_rc;
}

/* How many, at most HEARTH_MAX_DEVICES; 0 where that cannot be had. */
static int look_at_devices(struct device_state devices[HEARTH_MAX_DEVICES])
{
	int count = 0, mode;

	if (!enter(QUIET_CONTEXT))
		return 0;
	if (speculation.driver.count(&count) || count < 0)
		count = 0;
	if (count > (int)HEARTH_MAX_DEVICES)
		count = HEARTH_MAX_DEVICES;
	for (int i = 0; i < count; i++)
		if (!speculation.driver.attribute(&mode, ATTRIBUTE_COMPUTE_MODE, i))
			devices[i].compute_mode = (uint32_t)mode;
	leave();
	return count;
}

static bool choose_device(struct device_decision *ret_decision)
{
	struct device_state devices[HEARTH_MAX_DEVICES] = {0};
	int count = plan->decision->what == DECIDE_CONTEXT ? look_at_devices(devices) : 0;

	if (!count)
		return false;
	decide_device(plan->situation, count, plan->rank, devices, ret_decision);
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
	uint64_t start_us = now_awake_us();

	speculation.wanted = *wanted;
	if (!speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_BUSY))
		return;
	if (is_over() || !enter(QUIET_CONTEXT)) {
		speculation_write(&speculation.context, CONTEXT_GIVEN_UP);
		return;
	}
	speculation.context_rc =
		wanted->kind == PROFILE_PRIMARY ? make_primary(wanted) : make_created(wanted);
	if (!speculation.context_rc && must_check_memory && !has_room()) {
		log_info("speculation: no room on device %d", wanted->device);
		claim_release();
		speculation.context_rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	leave();
	speculation.context_us = now_awake_us() - start_us;
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

	if (!enter(QUIET_CONTEXT))
		return false;
	was_held = claim_give_up();
	leave();
	return was_held;
}

/* Somebody else may have come to need the memory. */
static bool has_room_still(void)
{
	bool has;

	if (!enter(QUIET_CONTEXT))
		return true;
	has = has_room();
	speculation.driver.set_current(speculation.handle); /* for what else is done in it */
	leave();
	return has;
}

/* In a spare, what is ready waits for as long as the python does, and as there is room. */
static void wait_for_program(void)
{
	while (spare_is_waiting() && speculation_read(&speculation.context) == CONTEXT_HELD &&
		!is_over()) {
		if (!has_room_still() && spare_is_waiting() && give_up()) {
			log_info("speculation: the context on device %d gives way",
				speculation.wanted.device);
			return;
		}
		speculation_wait(&speculation.context, CONTEXT_HELD, WATCH_US);
	}
}

/* Nobody asked in time. */
static void give_back(void)
{
	uint64_t end_us, now_us, left_us;
	uint32_t context;

	wait_for_program();
	end_us = clock_monotonic_us() + plan->decision->give_back_us;
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

	speculation.what = plan->decision->what;
	speculation.init_rc = CUDA_ERROR_NOT_INITIALIZED;
	speculation_write(&speculation.phase, PHASE_INIT);
	if (!is_open())
		return;
	if (!open_driver()) {
		speculation.init_rc = CUDA_ERROR_NOT_FOUND;
		gate_open();
		return;
	}
	if (!make_init())
		return;
	speculation_write(&speculation.phase, PHASE_INIT_DONE);
	if (is_over() || !choose_device(&device))
		return;
	speculation_write(&speculation.phase, PHASE_CONTEXT);
	make_context(&device.contexts[0], device.must_check_memory);
	if (speculation.handle && !speculation.context_rc && !is_over())
		prefetch_load();
	if (is_over())
		give_up();
	if (speculation_read(&speculation.context) == CONTEXT_HELD)
		spare_note(SPARE_AHEAD_CONTEXT, speculation.wanted.device);
	give_back();
	prefetch_give_back(plan->decision->give_back_us);
}

void *ahead_run(void *argument)
{
	plan = argument;
	speculation.thread = (pid_t)syscall(SYS_gettid);
	speculate();
	speculation_write(&speculation.phase, PHASE_ENDED);
	spare_note(speculation.init_rc ? SPARE_AHEAD_NOTHING : SPARE_AHEAD_INIT_ONLY, -1);
	while (is_open()) {
		speculation_wait(&speculation.verdict, VERDICT_OPEN, WATCH_US);
		end_if_last();
	}
	speculation_end_thread();
	return NULL;
}
