/* Committing and squashing. Runs on the program's threads, inside their calls of cuInit and of the
 * primary-context entries, perhaps under the loader's lock; every wait has a limit, after which the
 * calling thread squashes: a thread of ours that cannot get the lock must not hold the program up.
 */
#include "preload/claim.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "driver/copy.h"
#include "driver/quiet.h"
#include "driver/quiet_files.h"
#include "hearth/region.h"
#include "preload/gate.h"
#include "preload/loader_wait.h"
#include "preload/observe.h"
#include "preload/speculation.h"

#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A cuInit that is in progress is waited for so long: about what a cold one takes with two GPUs,
 * and at least twice what it was seen to take. */
#define INIT_LIMIT_US 700000
/* A context in progress; its calls do not enter the loader (measured on 580.159.04), but eight
 * processes at once take a second each. */
#define CONTEXT_LIMIT_US 10000000
/* After so long it is looked whether the loader's lock is what keeps it. */
#define STUCK_US 500000
/* A call in flight, before a squash goes on without it. */
#define STOP_LIMIT_US 200000
/* Another thread of the program that is claiming. */
#define CLAIM_LIMIT_US 5000000

static struct process {
	uid_t uid;
	gid_t gid;
	dev_t root_device;
	ino_t root_inode;
	cpu_set_t processors;
} process;

/* The flags that the program has set for the primary contexts, before it had any. */
static unsigned int program_flags[HEARTH_MAX_DEVICES];

static void read_process(struct process *ret_process)
{
	struct stat root = {0};

	memset(ret_process, 0, sizeof(*ret_process));
	ret_process->uid = geteuid();
	ret_process->gid = getegid();
	if (!status_of_path("/", &root)) {
		ret_process->root_device = root.st_dev;
		ret_process->root_inode = root.st_ino;
	}
	sched_getaffinity(0, sizeof(ret_process->processors), &ret_process->processors);
}

void claim_note_process(void)
{
	read_process(&process);
}

static const char descriptors[] = "the driver's descriptors";

/* NULL, or what differs from when it was made. */
static const char *why_invalid(enum quiet_stage stage)
{
	struct process now;
	const char *name;

	if (!quiet_is_valid(stage, &name))
		return name ? name : "the environment";
	read_process(&now);
	if (memcmp(&now, &process, sizeof(now)))
		return "the process's user, root folder or processors";
	if (!quiet_files_are_valid())
		return descriptors;
	return NULL;
}

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
	if (speculation.wanted.kind != PROFILE_PRIMARY) {
		speculation.driver.destroy(speculation.handle);
		return;
	}
	speculation.driver.release(speculation.wanted.device);
	if (flags && *flags)
		speculation.driver.set_flags(speculation.wanted.device, *flags);
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

/* Another copy becomes the driver. Where none can be had the old one stays: the program then runs
 * with what that copy saw. */
static void replace_driver(void)
{
	struct link_map *fresh = gate_pristine();

	if (fresh && route_driver_map()) {
		gate_forget_pristine();
		route_retarget(fresh);
	}
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
	speculation_write(&speculation.is_abandoned, 1);
	copy_retire();
	replace_driver();
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
			loader_wait_is_seen()) {
			renew();
			return false;
		}
	}
	return false;
}

/* Ends a grasp without handing the context over. */
static void drop(void)
{
	claim_release();
	speculation_write(&speculation.context, CONTEXT_GIVEN_UP);
}

static enum claim squash(const char *reason)
{
	log_info("squash: %s changed", reason);
	observe_squash();
	quiet_choose_exits(reason != descriptors);
	speculation_write(&speculation.is_abandoned, 1);
	speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_GIVEN_UP);
	/* What the thread has in flight belongs to the old copy; it will see the verdict. */
	if (speculation_wait(&speculation.context, CONTEXT_BUSY, STOP_LIMIT_US))
		claim_give_up();
	copy_retire();
	if (reason == descriptors) {
		copy_wake();
		quiet_files_silence();
	}
	replace_driver();
	gate_open();
	speculation_write(&speculation.verdict, VERDICT_SQUASHED);
	return CLAIM_SQUASHED;
}

static enum claim cancel(void)
{
	quiet_choose_exits(true);
	gate_open();
	speculation_write(&speculation.verdict, VERDICT_CANCELLED);
	return CLAIM_NOTHING;
}

static enum claim commit(uint64_t start_us, uint64_t *ret_hidden_us)
{
	uint64_t waited_us = clock_monotonic_us() - start_us;

	*ret_hidden_us = speculation.init_us > waited_us ? speculation.init_us - waited_us : 0;
	quiet_choose_exits(true);
	/* First the gate: whoever waits for the verdict goes on to call the driver. */
	gate_open();
	speculation_write(&speculation.verdict, VERDICT_COMMITTED);
	return CLAIM_COMMITTED;
}

/* In a fork child of a process whose speculation was not committed, the program has never used the
 * driver, so it may begin here, with a copy of its own. */
static enum claim claim_in_child(void)
{
	uint32_t verdict = speculation_read(&speculation.verdict);

	if (speculation_read(&speculation.phase) == PHASE_NONE)
		return CLAIM_NOTHING;
	speculation_write(&speculation.phase, PHASE_NONE);
	if (verdict != VERDICT_OPEN || !gate_is_closed())
		return CLAIM_NOTHING;
	/* Not every kind of fork runs handlers. */
	quiet_files_close(QUIET_INIT);
	replace_driver();
	gate_open();
	return CLAIM_NOTHING;
}

enum claim claim_init(unsigned int flags, uint64_t *ret_hidden_us)
{
	uint64_t start_us = clock_monotonic_us(), limit_us = INIT_LIMIT_US;
	const char *reason;

	if (flags)
		return CLAIM_NOTHING;
	if (speculation_read(&speculation.phase) == PHASE_NONE) {
		/* A thread that is started later must not begin. */
		speculation_change(&speculation.verdict, VERDICT_OPEN, VERDICT_CANCELLED);
		return CLAIM_NOTHING;
	}
	if (!speculation_is_ours())
		return claim_in_child();
	if (!speculation_change(&speculation.verdict, VERDICT_OPEN, VERDICT_CLAIMING)) {
		speculation_wait(&speculation.verdict, VERDICT_CLAIMING, CLAIM_LIMIT_US);
		return CLAIM_NOTHING;
	}
	if (speculation_read(&speculation.phase) < PHASE_INIT)
		return cancel();
	if (limit_us < 2 * observe_learned_init_us())
		limit_us = 2 * observe_learned_init_us();
	if (!speculation_wait(&speculation.phase, PHASE_INIT, limit_us))
		return squash("a cuInit that does not end was abandoned; nothing else");
	if (!gate_is_closed() || speculation.init_rc)
		return cancel();
	reason = why_invalid(QUIET_INIT);
	return reason ? squash(reason) : commit(start_us, ret_hidden_us);
}

/* The context in hand is the program's from now on, unless something is not as it was: `differs`
 * says in what the program asks for something else, or is NULL. */
static bool take(const char *differs, uint64_t start_us, uint64_t *ret_hidden_us)
{
	uint64_t waited_us;

	if (!differs)
		differs = why_invalid(QUIET_CONTEXT);
	if (differs) {
		log_info("squash: %s changed before the context", differs);
		observe_squash();
		drop();
		return false;
	}
	waited_us = clock_monotonic_us() - start_us;
	*ret_hidden_us =
		speculation.context_us > waited_us ? speculation.context_us - waited_us : 0;
	speculation_write(&speculation.context, CONTEXT_TAKEN);
	return true;
}

bool claim_primary(CUdevice device, CUcontext *ret_handle, uint64_t *ret_hidden_us)
{
	uint64_t start_us = clock_monotonic_us();
	const unsigned int *flags = flags_of(device);

	if (!grasp(PROFILE_PRIMARY, device) ||
		!take(speculation.wanted.flags == (flags ? *flags : 0) ? NULL : "flags", start_us,
			ret_hidden_us))
		return false;
	*ret_handle = speculation.handle;
	return true;
}

bool claim_created(uint32_t version, unsigned int flags, CUdevice device, CUcontext *ret_handle,
	uint64_t *ret_hidden_us)
{
	const struct profile_context *wanted = &speculation.wanted;
	uint64_t start_us = clock_monotonic_us();
	CUresult (*push)(CUcontext);

	if (!grasp(PROFILE_CREATED, device) ||
		!take(wanted->version == version && wanted->flags == flags ? NULL : "its kind",
			start_us, ret_hidden_us))
		return false;
	push = (CUresult(*)(CUcontext))route_real(ROW_cuCtxPushCurrent_v2);
	if (push(speculation.handle)) {
		claim_release();
		return false;
	}
	*ret_handle = speculation.handle;
	return true;
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
		drop();
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
		drop();
}
