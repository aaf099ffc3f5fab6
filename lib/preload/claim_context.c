/* Committing and undoing the context that was made ahead. Runs on the program's threads, inside
 * their calls of the context entries, perhaps under the loader's lock, so every wait has a limit;
 * releases also run on the speculative thread. */
#include "base/clock.h"
#include "base/log.h"
#include "driver/copy.h"
#include "driver/quiet.h"
#include "driver/quiet_files.h"
#include "hearth/region.h"
#include "preload/around.h"
#include "preload/claim.h"
#include "preload/loader_wait.h"
#include "preload/observe.h"
#include "preload/prefetch.h"
#include "preload/route.h"
#include "preload/speculation.h"

/* A context in progress; its calls do not enter the loader (measured on 580.159.04), but eight
 * processes at once take a second each. */
#define CONTEXT_LIMIT_US 10000000
/* After so long it is looked whether the loader's lock is what keeps it. */
#define STUCK_US 500000

/* The flags that the program has set for the primary contexts, before it had any. */
static unsigned int program_flags[HEARTH_MAX_DEVICES];

/* What was made ahead was undone; the program's next context is what it gets instead. */
static uint32_t is_undone;

static unsigned int *flags_of(CUdevice device)
{
	return device >= 0 && device < (CUdevice)HEARTH_MAX_DEVICES ? &program_flags[device] : NULL;
}

/* The last reference takes the flags along (measured on 580.159.04). A driver whose descriptors are
 * gone must not be called: it would use the program's files, or wait for ever. */
void claim_release(void)
{
	const unsigned int *flags = flags_of(speculation.wanted.device);

	if (!quiet_files_are_valid())
		return;
	prefetch_halt(CONTEXT_LIMIT_US);
	if (speculation.wanted.kind == PROFILE_PRIMARY)
		speculation.driver.release(speculation.wanted.device);
	else
		speculation.driver.destroy(speculation.handle);
	if (speculation.wanted.kind == PROFILE_PRIMARY && flags && *flags)
		speculation.driver.set_flags(speculation.wanted.device, *flags);
	prefetch_resume();
}

bool claim_give_up(void)
{
	speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_GIVEN_UP);
	if (!speculation_change(&speculation.context, CONTEXT_HELD, CONTEXT_BUSY))
		return false;
	claim_release();
	speculation_write(&speculation.context, CONTEXT_GIVEN_UP);
	return true;
}

/* The thread waits, inside the context that the program wants, for the loader's lock, which the
 * program will not let go of before it has the context: a library's constructor. So it gets another
 * copy of the driver, initialised like the one it had. What else it has got from that one would be
 * lost; but there is no other way out. */
static void renew(void)
{
	log_info("squash: a context that does not come to be was abandoned");
	observe_squash();
	quiet_choose_exits(false);
	claim_abandon();
	copy_retire();
	quiet_files_accept_retired();
	claim_replace_driver();
	((CUresult(*)(unsigned int))route_real(ROW_cuInit))(0);
}

/* What the thread makes is still what the program would get. */
static bool is_ahead(void)
{
	return speculation_is_ours() && !speculation_read(&speculation.is_abandoned);
}

/* Takes the held context in hand: true where there is one of that kind for that device, which is
 * BUSY then. One that is not begun will not be: the program makes it itself. */
static bool grasp(enum profile_context_kind kind, CUdevice device)
{
	uint64_t end_us = clock_monotonic_us() + CONTEXT_LIMIT_US;

	around_child();
	if (!is_ahead())
		return false;
	speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_GIVEN_UP);
	while (clock_monotonic_us() < end_us) {
		uint32_t context = speculation_read(&speculation.context);

		if ((context != CONTEXT_HELD && context != CONTEXT_BUSY) ||
			kind != speculation.wanted.kind || device != speculation.wanted.device)
			return false;
		if (speculation_change(&speculation.context, CONTEXT_HELD, CONTEXT_BUSY))
			return true;
		if (!speculation_wait(&speculation.context, CONTEXT_BUSY, STUCK_US) &&
			loader_wait_is_seen(0)) {
			renew();
			return false;
		}
	}
	return false;
}

/* Ends a grasp without handing the context over. */
static void drop(const char *reason)
{
	log_info("squash: %s before the context", reason);
	observe_squash();
	__atomic_store_n(&is_undone, 1, __ATOMIC_RELAXED);
	claim_release();
	speculation_write(&speculation.context, CONTEXT_GIVEN_UP);
}

/* The context in hand is the program's from now on, unless something is not as it was. */
static bool take(bool is_same, uint64_t start_us, uint64_t *ret_hidden_us)
{
	const char *differs = is_same ? claim_why_invalid(QUIET_CONTEXT) : "what is asked for";
	uint64_t waited_us;

	if (differs) {
		drop(differs);
		return false;
	}
	waited_us = clock_monotonic_us() - start_us;
	*ret_hidden_us =
		speculation.context_us > waited_us ? speculation.context_us - waited_us : 0;
	speculation_write(&speculation.context, CONTEXT_TAKEN);
	return true;
}

static enum claim not_taken(void)
{
	return __atomic_exchange_n(&is_undone, 0, __ATOMIC_RELAXED) ? CLAIM_SQUASHED
								    : CLAIM_NOTHING;
}

enum claim claim_primary(CUdevice device, CUcontext *ret_handle, uint64_t *ret_hidden_us)
{
	uint64_t start_us = clock_monotonic_us();
	const unsigned int *flags = flags_of(device);

	if (!grasp(PROFILE_PRIMARY, device) ||
		!take(speculation.wanted.flags == (flags ? *flags : 0), start_us, ret_hidden_us))
		return not_taken();
	*ret_handle = speculation.handle;
	return CLAIM_COMMITTED;
}

enum claim claim_created(uint32_t version, unsigned int flags, CUdevice device,
	CUcontext *ret_handle, uint64_t *ret_hidden_us)
{
	const struct profile_context *wanted = &speculation.wanted;
	uint64_t start_us = clock_monotonic_us();
	CUresult (*push)(CUcontext);

	if (!grasp(PROFILE_CREATED, device) ||
		!take(wanted->version == version && wanted->flags == flags, start_us,
			ret_hidden_us))
		return not_taken();
	push = (CUresult(*)(CUcontext))route_real(ROW_cuCtxPushCurrent_v2);
	if (push(speculation.handle)) {
		claim_release();
		return CLAIM_NOTHING;
	}
	*ret_handle = speculation.handle;
	return CLAIM_COMMITTED;
}

bool claim_is_hidden(CUdevice device, unsigned int *ret_flags)
{
	uint32_t context = speculation_read(&speculation.context);
	const unsigned int *flags = flags_of(device);

	if ((context != CONTEXT_HELD && context != CONTEXT_BUSY) || !is_ahead() ||
		speculation.wanted.kind != PROFILE_PRIMARY || device != speculation.wanted.device)
		return false;
	*ret_flags = flags ? *flags : 0;
	return true;
}

bool claim_has_flags(CUdevice device, unsigned int flags)
{
	bool is_same;

	if (!grasp(PROFILE_PRIMARY, device))
		return false;
	is_same = flags == speculation.wanted.flags;
	if (is_same) {
		claim_note_flags(device, flags);
		speculation_write(&speculation.context, CONTEXT_HELD);
	} else {
		drop("other flags");
	}
	return is_same;
}

void claim_note_flags(CUdevice device, unsigned int flags)
{
	unsigned int *own = flags_of(device);

	if (own)
		*own = flags;
}

void claim_yield(CUdevice device)
{
	if (grasp(PROFILE_PRIMARY, device))
		drop("a reset or release");
}
