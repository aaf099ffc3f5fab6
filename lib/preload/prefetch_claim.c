/* Handing over what was loaded ahead. Runs on the program's threads, inside their calls; every wait
 * has a limit. Must not call the driver on a path that the program's own call would not take. */
#include "preload/prefetch.h"

#include "base/clock.h"
#include "base/log.h"
#include "driver/quiet.h"
#include "preload/loader_wait.h"
#include "preload/prefetch_table.h"
#include "preload/route.h"
#include "preload/speculation.h"

#include <string.h>

/* An image in progress: its load, and a kernel of it. */
#define LOAD_LIMIT_US 10000000
/* After so long it is looked whether the loader's lock is what keeps it. */
#define STUCK_US 500000
/* What a first launch waits at most for a call in flight. */
#define LAUNCH_LIMIT_US 1000000
/* The same where all is to be undone. */
#define HALT_LIMIT_US 10000000

/* Images that the program has loaded, and those of them that were handed over. */
static uint32_t asked, adopted;

bool prefetch_is_there(void)
{
	return __atomic_load_n(&prefetch.count, __ATOMIC_ACQUIRE);
}

/* What is ready is the driver's that the program has. */
static bool is_handing_over(void)
{
	return prefetch_is_there() && speculation_is_ours() &&
	       speculation_read(&speculation.verdict) == VERDICT_COMMITTED &&
	       !speculation_read(&speculation.is_abandoned);
}

/* Whatever there is to be waited for has been: false where it is not to be had. */
static bool settle(struct prefetch_image *image)
{
	uint64_t end_us = clock_monotonic_us() + LOAD_LIMIT_US;

	if (speculation_change(&image->state, PREFETCH_WAITING, PREFETCH_SKIPPED))
		return false;
	speculation_write(&image->is_wanted, 1);
	while (speculation_read(&image->state) == PREFETCH_LOADING && clock_monotonic_us() < end_us)
		if (!speculation_wait(&image->state, PREFETCH_LOADING, STUCK_US) &&
			loader_wait_is_seen(0))
			return false;
	return speculation_read(&image->state) == PREFETCH_READY;
}

/* A module belongs to the context that it was loaded into; and where a kernel has gone wrong there,
 * the program is to hear of it. */
static bool is_current(void)
{
	CUresult (*current)(CUcontext *) =
		(CUresult(*)(CUcontext *))route_real(ROW_cuCtxGetCurrent);
	CUcontext context = NULL;
	size_t free_bytes, total;

	return !current(&context) && context == speculation.handle &&
	       !speculation.driver.memory(&free_bytes, &total);
}

static bool take(struct prefetch_image *image)
{
	const char *name;

	if (image->epoch != speculation_read(&prefetch.epoch) ||
		(!prefetch_is_library(image) && !is_current()))
		return false;
	if (!quiet_is_valid(QUIET_LIBRARY, &name)) {
		log_info("prefetch: %s changed before a load", name ? name : "the environment");
		return false;
	}
	return speculation_change(&image->state, PREFETCH_READY, PREFETCH_TAKEN);
}

/* The image that the call asks for, if it is not the program's or gone; NULL for none. */
static struct prefetch_image *find(const struct image_call *call)
{
	for (uint32_t i = 0; i < prefetch.count; i++)
		if (speculation_read(&prefetch.images[i].state) <= PREFETCH_READY &&
			image_call_is(call, &prefetch.list, prefetch.images[i].index,
				&prefetch.images[i].source))
			return &prefetch.images[i];
	return NULL;
}

static bool claim(struct image_call *call, void **ret_handle, uint64_t *ret_load_us)
{
	struct prefetch_image *image = find(call);

	if (!image || !settle(image) || !take(image))
		return false;
	*ret_load_us = image->load_us;
	*ret_handle = image->handle;
	call->is_known = true;
	memcpy(call->known, prefetch.list.images[image->index].digest, sizeof(call->known));
	/* The driver has a copy of its own. */
	if (!prefetch_is_preserved(image))
		prefetch_close(image, 1);
	log_debug("prefetch: image %u is handed over", image->index);
	return true;
}

bool prefetch_claim(struct image_call *call, void **ret_handle, uint64_t *ret_hidden_us)
{
	uint64_t start_us = clock_monotonic_us(), end_us, load_us;
	bool is_ready;

	if (!is_handing_over())
		return false;
	__atomic_fetch_add(&prefetch.readers, 1, __ATOMIC_SEQ_CST);
	is_ready = claim(call, ret_handle, &load_us);
	__atomic_fetch_sub(&prefetch.readers, 1, __ATOMIC_SEQ_CST);
	if (!is_ready)
		return false;
	end_us = clock_monotonic_us();
	*ret_hidden_us = load_us > end_us - start_us ? load_us - (end_us - start_us) : 0;
	__atomic_store_n(&prefetch.last_us, end_us, __ATOMIC_RELAXED);
	prefetch_wake();
	return true;
}

static bool stop(uint64_t limit_us)
{
	__atomic_fetch_add(&prefetch.halts, 1, __ATOMIC_SEQ_CST);
	prefetch_wake();
	return speculation_wait_outside(limit_us);
}

/* Waits until the thread has let go of it, and takes it away. */
static void undo(struct prefetch_image *image)
{
	speculation_wait(&image->state, PREFETCH_LOADING, HALT_LIMIT_US);
	if (!speculation_change(&image->state, PREFETCH_READY, PREFETCH_GONE))
		return;
	prefetch_unload(image);
	prefetch_close(image, 0);
}

void prefetch_count(bool is_handed_over)
{
	__atomic_fetch_add(&asked, 1, __ATOMIC_RELAXED);
	if (is_handed_over)
		__atomic_fetch_add(&adopted, 1, __ATOMIC_RELAXED);
}

void prefetch_counts(uint32_t *ret_asked, uint32_t *ret_adopted)
{
	*ret_asked = __atomic_load_n(&asked, __ATOMIC_RELAXED);
	*ret_adopted = __atomic_load_n(&adopted, __ATOMIC_RELAXED);
}

void prefetch_undo(void)
{
	if (!is_handing_over() || speculation_read(&prefetch.launched))
		return;
	log_debug("prefetch: undone");
	if (stop(HALT_LIMIT_US))
		for (uint32_t i = 0; i < prefetch.count; i++)
			undo(&prefetch.images[i]);
	__atomic_fetch_add(&prefetch.epoch, 1, __ATOMIC_SEQ_CST);
	prefetch_resume();
}

void prefetch_unloaded(CUlibrary library)
{
	if (!prefetch_is_there() || !speculation_is_ours())
		return;
	for (uint32_t i = 0; i < prefetch.count; i++) {
		struct prefetch_image *image = &prefetch.images[i];

		if (image->handle != library || !prefetch_is_library(image) ||
			!speculation_change(&image->state, PREFETCH_TAKEN, PREFETCH_GONE))
			continue;
		prefetch_close(image, 0);
		return;
	}
}

void prefetch_launching(void)
{
	if (speculation_read(&prefetch.launched))
		return;
	speculation_write(&prefetch.launched, 1);
	if (!speculation_is_ours())
		return;
	prefetch_wake();
	speculation_wait_outside(LAUNCH_LIMIT_US);
}

bool prefetch_halt(uint64_t limit_us)
{
	bool is_still = stop(limit_us);

	__atomic_fetch_add(&prefetch.epoch, 1, __ATOMIC_SEQ_CST);
	return is_still;
}

void prefetch_resume(void)
{
	__atomic_fetch_sub(&prefetch.halts, 1, __ATOMIC_SEQ_CST);
	prefetch_wake();
}

static bool is_programs(enum profile_context_kind kind)
{
	return speculation_is_ours() && speculation.wanted.kind == kind &&
	       speculation_read(&speculation.context) == CONTEXT_TAKEN;
}

bool prefetch_is_in(CUcontext context)
{
	return is_programs(PROFILE_CREATED) && speculation.handle == context;
}

bool prefetch_is_on(CUdevice device)
{
	return is_programs(PROFILE_PRIMARY) && speculation.wanted.device == device;
}
