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
#include "preload/route.h"
#include "preload/speculation.h"
#include "preload/stand_in.h"

#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A cuInit that is in progress is waited for so long: about what a cold one takes with two GPUs,
 * and at least twice what it was seen to take. */
#define INIT_LIMIT_US 700000
/* A call in flight, before a squash goes on without it: where all is well (eight processes at once
 * take a second each), and where the driver's descriptors are gone, so that it may never end. So
 * often it is looked whether the loader's lock is what keeps it. */
#define STOP_LIMIT_US 2000000
#define STOP_BROKEN_LIMIT_US 200000
#define STOP_STEP_US 200000
/* A thread that has come out of the driver, and hands the context over or releases it. */
#define HANDOVER_US 1000
/* Another thread of the program that is claiming. */
#define CLAIM_LIMIT_US 5000000

static struct process {
	uid_t uid;
	gid_t gid;
	dev_t root_device;
	ino_t root_inode;
	cpu_set_t processors;
} process;

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
static const char unending[] = "a cuInit that does not end";

const char *claim_why_invalid(enum quiet_stage stage)
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

/* Another copy becomes the driver. Where none can be had the old one stays: the program then runs
 * with what that copy saw. */
void claim_replace_driver(void)
{
	struct link_map *fresh = gate_pristine();

	if (fresh && route_driver_map()) {
		gate_forget_pristine();
		route_retarget(fresh);
		stand_in_begin();
	}
}

void claim_abandon(void)
{
	speculation_write(&speculation.is_abandoned, 1);
	quiet_files_refuse_names();
}

/* What the thread has in flight belongs to the old copy: another one beside it is safe once it has
 * come out, and what it made there has been released, by the thread itself or here. */
static void stop_thread(uint64_t limit_us)
{
	uint64_t end_us = clock_monotonic_us() + limit_us;

	speculation_change(&speculation.context, CONTEXT_NONE, CONTEXT_GIVEN_UP);
	while (clock_monotonic_us() < end_us) {
		uint32_t context;

		if (!speculation_wait_outside(STOP_STEP_US)) {
			if (loader_wait_is_seen(speculation.thread))
				return;
			continue;
		}
		if (claim_give_up())
			return;
		context = speculation_read(&speculation.context);
		if (context != CONTEXT_HELD && context != CONTEXT_BUSY)
			return;
		speculation_wait(&speculation.context, context, HANDOVER_US);
	}
}

static enum claim squash(const char *what, const char *how)
{
	log_info("squash: %s %s", what, how);
	observe_squash();
	quiet_choose_exits(what != descriptors);
	claim_abandon();
	stop_thread(what == unending      ? 0
		    : what == descriptors ? STOP_BROKEN_LIMIT_US
					  : STOP_LIMIT_US);
	copy_retire();
	if (what == descriptors) {
		copy_wake();
		quiet_files_silence();
	} else {
		quiet_files_accept_retired();
	}
	claim_replace_driver();
	gate_open();
	speculation_write(&speculation.verdict, VERDICT_SQUASHED);
	return CLAIM_SQUASHED;
}

static enum claim cancel(void)
{
	quiet_choose_exits(true);
	stand_in_end();
	gate_open();
	speculation_write(&speculation.verdict, VERDICT_CANCELLED);
	return CLAIM_NOTHING;
}

static enum claim commit(uint64_t start_us, uint64_t *ret_hidden_us)
{
	uint64_t waited_us = clock_monotonic_us() - start_us;

	*ret_hidden_us = speculation.init_us > waited_us ? speculation.init_us - waited_us : 0;
	quiet_choose_exits(true);
	stand_in_end();
	/* First the gate: whoever waits for the verdict goes on to call the driver. */
	gate_open();
	speculation_write(&speculation.verdict, VERDICT_COMMITTED);
	return CLAIM_COMMITTED;
}

/* The program has never used the driver in this process or, where it has done so in a parent, not
 * since: a copy of its own. */
static void begin_in_child(void)
{
	uint32_t verdict = speculation_read(&speculation.verdict);

	if (speculation_read(&speculation.phase) == PHASE_NONE)
		return;
	if (verdict <= VERDICT_CLAIMING && gate_is_closed()) {
		claim_replace_driver();
		gate_open();
	}
	speculation_write(&speculation.phase, PHASE_NONE);
}

/* In a fork child of a process whose speculation was not committed. Of threads that come at once
 * one begins, and the others wait for it. The word is the process's id, doubled, and 1 more when it
 * is done: a child finds its parent's. */
static enum claim claim_in_child(void)
{
	static uint32_t begun;
	uint32_t self = (uint32_t)getpid() * 2, found = speculation_read(&begun);

	while (found != self && found != self + 1) {
		if (speculation_change(&begun, found, self)) {
			begin_in_child();
			speculation_write(&begun, self + 1);
		}
		found = speculation_read(&begun);
	}
	speculation_wait(&begun, self, CLAIM_LIMIT_US);
	return CLAIM_NOTHING;
}

/* What the thread did is the program's to judge: waits until cuInit is through. Anything but
 * CLAIM_COMMITTED is the answer. */
static enum claim begin_claim(void)
{
	uint64_t limit_us = INIT_LIMIT_US;

	if (speculation_read(&speculation.phase) == PHASE_NONE) {
		/* A thread that is started later must not begin. */
		speculation_change(&speculation.verdict, VERDICT_OPEN, VERDICT_CANCELLED);
		return CLAIM_NOTHING;
	}
	if (!speculation_is_ours())
		return claim_in_child();
	if (!speculation_change(&speculation.verdict, VERDICT_OPEN, VERDICT_CLAIMING)) {
		speculation_wait(&speculation.verdict, VERDICT_CLAIMING, CLAIM_LIMIT_US);
		return speculation_read(&speculation.verdict) == VERDICT_SQUASHED ? CLAIM_SQUASHED
										  : CLAIM_NOTHING;
	}
	if (speculation_read(&speculation.phase) < PHASE_INIT)
		return cancel();
	if (limit_us < 2 * observe_learned_init_us())
		limit_us = 2 * observe_learned_init_us();
	if (!speculation_wait(&speculation.phase, PHASE_INIT, limit_us))
		return squash(unending, "was abandoned");
	if (!gate_is_closed() || speculation.init_rc)
		return cancel();
	return CLAIM_COMMITTED;
}

enum claim claim_init(unsigned int flags, uint64_t *ret_hidden_us)
{
	uint64_t start_us = clock_monotonic_us();
	const char *reason;
	enum claim claim;

	if (flags)
		return CLAIM_NOTHING;
	claim = begin_claim();
	if (claim != CLAIM_COMMITTED)
		return claim;
	reason = claim_why_invalid(QUIET_INIT);
	return reason ? squash(reason, "changed") : commit(start_us, ret_hidden_us);
}

void claim_end(const char *reason)
{
	if (begin_claim() == CLAIM_COMMITTED)
		squash(reason, "ends speculation");
}

void claim_child(void)
{
	if (speculation_read(&speculation.phase) != PHASE_NONE && !speculation_is_ours())
		claim_in_child();
}

bool claim_is_ahead(void)
{
	return speculation_is_ours() && speculation_read(&speculation.verdict) == VERDICT_OPEN &&
	       speculation_read(&speculation.phase) >= PHASE_INIT &&
	       speculation_wait(&speculation.phase, PHASE_INIT, INIT_LIMIT_US) &&
	       gate_is_closed() && !speculation.init_rc;
}
