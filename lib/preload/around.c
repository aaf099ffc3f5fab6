/* Forks and the end of the process, while the speculative thread may be in the driver. Runs on the
 * program's threads, in libc's handlers; every wait has a limit, since a library's constructor that
 * forks or exits may hold the lock that the thread waits for. */
#include "preload/around.h"

#include "driver/quiet.h"
#include "driver/quiet_files.h"
#include "preload/loader_wait.h"
#include "preload/speculation.h"
#include "preload/threads.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/* How long a fork waits for the thread to leave the loader, and an exit for it to leave the
 * driver. */
#define FORK_LIMIT_US 200000
#define EXIT_LIMIT_US 5000000
/* So often an exit looks whether the loader's lock is what keeps the thread. */
#define EXIT_STEP_US 200000

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

void around_child(void)
{
	static pid_t tidied;
	uint32_t verdict = speculation_read(&speculation.verdict);
	pid_t self;

	if (speculation_read(&speculation.phase) < PHASE_INIT)
		return;
	self = getpid();
	if (self == speculation.pid || self == tidied)
		return;
	tidied = self;
	quiet_files_after_fork(true);
	if (verdict <= VERDICT_CLAIMING || verdict == VERDICT_SQUASHED)
		quiet_files_close(QUIET_INIT);
	else if (verdict == VERDICT_COMMITTED &&
		 speculation_read(&speculation.context) != CONTEXT_TAKEN)
		quiet_files_close(QUIET_CONTEXT);
}

void around_leave(void)
{
	static uint32_t is_stuck;

	if (!speculation_is_ours())
		return;
	speculation_write(&speculation.is_leaving, 1);
	for (uint64_t us = 0; us < EXIT_LIMIT_US && !speculation_read(&is_stuck);
		us += EXIT_STEP_US) {
		if (speculation_wait_outside(EXIT_STEP_US)) {
			quiet_register_exits();
			return;
		}
		if (loader_wait_is_seen(speculation.thread))
			break;
	}
	speculation_write(&is_stuck, 1);
	quiet_choose_exits(false);
}

static void at_exit(void *unused)
{
	around_leave();
}

void around_begin(void)
{
	threads_at_fork(before_fork, after_fork, around_child);
	threads_at_exit(at_exit);
}
