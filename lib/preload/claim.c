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
#include "preload/gate.h"
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

/* The flags that the program has set for the primary context that is held ahead. */
static unsigned int program_flags;

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
		return "the driver's descriptors";
	return NULL;
}

void claim_release(void)
{
	CUresult (*release)(CUdevice) =
		(CUresult(*)(CUdevice))route_real(ROW_cuDevicePrimaryCtxRelease_v2);
	CUresult (*destroy)(CUcontext) = (CUresult(*)(CUcontext))route_real(ROW_cuCtxDestroy_v2);

	if (speculation.wanted.kind == PROFILE_PRIMARY)
		release(speculation.wanted.device);
	else
		destroy(speculation.handle);
}

static void set_flags(CUdevice device, unsigned int flags)
{
	CUresult (*set)(CUdevice, unsigned int) =
		(CUresult(*)(CUdevice, unsigned int))route_real(ROW_cuDevicePrimaryCtxSetFlags_v2);

	set(device, flags);
}

void claim_give_up(void)
{
	speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_GIVEN_UP);
	if (!speculation_change(&speculation.context, CONTEXT_HELD, CONTEXT_GIVEN_UP))
		return;
	claim_release();
	if (speculation.wanted.kind == PROFILE_PRIMARY && speculation.wanted.flags != program_flags)
		set_flags(speculation.wanted.device, program_flags);
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

static enum claim squash(const char *reason)
{
	log_info("squash: %s changed", reason);
	observe_squash();
	speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_GIVEN_UP);
	/* What the thread has in flight belongs to the old copy; it will see the verdict. */
	if (speculation_wait(&speculation.context, CONTEXT_BUSY, STOP_LIMIT_US))
		claim_give_up();
	copy_retire();
	replace_driver();
	speculation_write(&speculation.verdict, VERDICT_SQUASHED);
	gate_open();
	return CLAIM_SQUASHED;
}

static enum claim cancel(void)
{
	speculation_write(&speculation.verdict, VERDICT_CANCELLED);
	gate_open();
	return CLAIM_NOTHING;
}

static enum claim commit(uint64_t start_us, uint64_t *ret_hidden_us)
{
	uint64_t waited_us = clock_monotonic_us() - start_us;

	*ret_hidden_us = speculation.init_us > waited_us ? speculation.init_us - waited_us : 0;
	speculation_write(&speculation.verdict, VERDICT_COMMITTED);
	gate_open();
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
	quiet_files_close();
	replace_driver();
	gate_open();
	return CLAIM_NOTHING;
}

enum claim claim_init(unsigned int flags, uint64_t *ret_hidden_us)
{
	uint64_t start_us = clock_monotonic_us(), limit_us = INIT_LIMIT_US;
	const char *reason;

	if (speculation_read(&speculation.phase) == PHASE_NONE || flags)
		return CLAIM_NOTHING;
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

/* Is a context of that kind held, or being made, for that device? */
static bool is_about(enum profile_context_kind kind, CUdevice device)
{
	uint32_t context = speculation_read(&speculation.context);

	return (context == CONTEXT_HELD || context == CONTEXT_BUSY) && speculation_is_ours() &&
	       kind == speculation.wanted.kind && device == speculation.wanted.device;
}

/* The program asks for what is held: `differs` says in what it asks for something else, or is NULL.
 * The reference becomes the program's. */
static bool take(const char *differs, uint64_t start_us, uint64_t *ret_hidden_us)
{
	uint64_t waited_us;

	if (!differs)
		differs = why_invalid(QUIET_CONTEXT);
	if (differs) {
		log_info("squash: %s changed before the context", differs);
		observe_squash();
		claim_give_up();
		return false;
	}
	if (!speculation_change(&speculation.context, CONTEXT_HELD, CONTEXT_TAKEN))
		return false;
	waited_us = clock_monotonic_us() - start_us;
	*ret_hidden_us =
		speculation.context_us > waited_us ? speculation.context_us - waited_us : 0;
	return true;
}

/* True where there is something to take, once a context in progress is done. One that is not begun
 * the program makes itself. */
static bool is_there(enum profile_context_kind kind, CUdevice device)
{
	if (speculation_is_ours())
		speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_GIVEN_UP);
	if (!is_about(kind, device))
		return false;
	speculation_wait(&speculation.context, CONTEXT_BUSY, CONTEXT_LIMIT_US);
	return is_about(kind, device);
}

bool claim_primary(CUdevice device, CUcontext *ret_handle, uint64_t *ret_hidden_us)
{
	uint64_t start_us = clock_monotonic_us();

	if (!is_there(PROFILE_PRIMARY, device) ||
		!take(speculation.wanted.flags == program_flags ? NULL : "flags", start_us,
			ret_hidden_us))
		return false;
	*ret_handle = speculation.handle;
	return true;
}

bool claim_created(uint32_t version, unsigned int flags, CUdevice device, CUcontext *ret_handle,
	uint64_t *ret_hidden_us)
{
	CUresult (*push)(CUcontext) = (CUresult(*)(CUcontext))route_real(ROW_cuCtxPushCurrent_v2);
	const struct profile_context *wanted = &speculation.wanted;
	uint64_t start_us = clock_monotonic_us();

	if (!is_there(PROFILE_CREATED, device) ||
		!take(wanted->version == version && wanted->flags == flags ? NULL : "its kind",
			start_us, ret_hidden_us) ||
		push(speculation.handle))
		return false;
	*ret_handle = speculation.handle;
	return true;
}

bool claim_is_hidden(CUdevice device, unsigned int *ret_flags)
{
	if (!is_about(PROFILE_PRIMARY, device))
		return false;
	*ret_flags = program_flags;
	return true;
}

bool claim_has_flags(CUdevice device, unsigned int flags)
{
	if (!is_about(PROFILE_PRIMARY, device) || flags != speculation.wanted.flags)
		return false;
	program_flags = flags;
	return true;
}

void claim_yield(CUdevice device)
{
	if (!is_about(PROFILE_PRIMARY, device))
		return;
	speculation_wait(&speculation.context, CONTEXT_BUSY, CONTEXT_LIMIT_US);
	claim_give_up();
}
