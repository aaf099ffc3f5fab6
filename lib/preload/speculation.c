/* The words that the speculative thread and the program share. Runs on both; holds no lock. */
#include "preload/speculation.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A thread that ends wakes nobody: it is looked so often whether it is gone. */
#define ENDING_STEP_US 200

struct speculation speculation;

static void wake(const uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void speculation_write(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	wake(word);
}

bool speculation_change(uint32_t *word, uint32_t from, uint32_t to)
{
	if (!__atomic_compare_exchange_n(
		    word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return false;
	wake(word);
	return true;
}

bool speculation_wait(const uint32_t *word, uint32_t value, uint64_t limit_us)
{
	uint64_t deadline_us = clock_monotonic_us() + limit_us, now_us;

	while (speculation_read(word) == value) {
		struct timespec left;

		now_us = clock_monotonic_us();
		if (now_us >= deadline_us)
			return false;
		left.tv_sec = (time_t)((deadline_us - now_us) / 1000000);
		left.tv_nsec = (long)((deadline_us - now_us) % 1000000 * 1000);
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &left, NULL, 0);
	}
	return true;
}

bool speculation_is_ours(void)
{
	return speculation_read(&speculation.phase) != PHASE_NONE && speculation.pid == getpid();
}

bool speculation_enter(void)
{
	speculation_write(&speculation.place, PLACE_INSIDE);
	if (!speculation_read(&speculation.is_leaving))
		return true;
	speculation_leave();
	return false;
}

void speculation_leave(void)
{
	speculation_write(&speculation.place, PLACE_OUTSIDE);
}

void speculation_end_thread(void)
{
	speculation_write(&speculation.place, PLACE_ENDING);
	if (!speculation_read(&speculation.is_leaving))
		return;
	speculation_leave();
	for (;;)
		pause();
}

static bool is_gone(pid_t thread)
{
	int kept = errno;
	bool is_gone = syscall(SYS_tgkill, getpid(), thread, 0) && errno == ESRCH;

	errno = kept;
	return is_gone;
}

bool speculation_wait_outside(uint64_t limit_us)
{
	uint64_t end_us = clock_monotonic_us() + limit_us, now_us;

	for (;;) {
		uint32_t place = speculation_read(&speculation.place);

		now_us = clock_monotonic_us();
		if (place == PLACE_OUTSIDE || speculation.thread == syscall(SYS_gettid) ||
			(place == PLACE_ENDING && is_gone(speculation.thread)))
			return true;
		if (now_us >= end_us)
			return false;
		speculation_wait(&speculation.place, place,
			place == PLACE_ENDING && end_us - now_us > ENDING_STEP_US
				? ENDING_STEP_US
				: end_us - now_us);
	}
}
