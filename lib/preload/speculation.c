/* The words that the speculative thread and the program share. Runs on both; holds no lock. */
#include "preload/speculation.h"

#include "base/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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
