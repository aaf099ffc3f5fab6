/* Asking others to give way, and giving way. give_way runs on the speculative thread, inside the
 * driver, the rest on the program's threads; none of it may wait for a lock, allocate, or keep a
 * descriptor at a number that the program would be given. */
#include "preload/give_way.h"

#include "base/clock.h"
#include "driver/quiet_files.h"
#include "preload/speculation.h"
#include "preload/start.h"
#include "preload/threads.h"
#include "region/address.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SUFFIX ".turn" /* which the broker has made beside its socket */
#define LOCKED_BYTES 1
#define LOOK_EVERY_US 1000 /* a retain is some 350 requests in 110 ms */
#define SLEEP_US 1000
#define LIMIT_US 3000000 /* in a process's whole life */
#define HIGH_FIRST 900   /* a soft limit of 1,024 descriptors is usual */
#define HELD_MAX 8       /* threads of one program that make others wait */

static char file[ADDRESS_MAX + sizeof(SUFFIX)];
static uint32_t waiting; /* threads of this program */
static uint64_t slept_us, looked_us;
static int held[HELD_MAX]; /* descriptors that hold the lock, and one more; 0 = none */
static uint32_t is_known_at_fork;

static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

/* The first that is there: all programs of a user then meet in the same one. */
static int find_file(char ret_path[sizeof(file)])
{
	struct address candidates[ADDRESS_CANDIDATES];
	size_t count = address_candidates(start_settings(), candidates);

	for (size_t i = 0; i < count; i++) {
		size_t length = strnlen(candidates[i].path, ADDRESS_MAX);
		int fd;

		memcpy(ret_path, candidates[i].path, length);
		memcpy(ret_path + length, SUFFIX, sizeof(SUFFIX));
		fd = open_file(ret_path);
		if (fd >= 0)
			return fd;
	}
	ret_path[0] = '\0';
	return -ENOENT;
}

void give_way_prepare(void)
{
	int kept = errno, fd = find_file(file);

	if (fd >= 0)
		close(fd);
	errno = kept;
}

/* By number: libc's fcntl has another version in each of its ages. */
static bool ask(int fd, int command, struct flock *lock)
{
	lock->l_whence = SEEK_SET;
	lock->l_len = LOCKED_BYTES;
	return !syscall(SYS_fcntl, fd, command, lock);
}

/* Does another program wait? The turn: so that no fork child gets the descriptor. */
static bool do_others_wait(void)
{
	struct flock lock = {.l_type = F_WRLCK};
	bool is_seen = false;
	int fd;

	quiet_files_begin();
	fd = open_file(file);
	if (fd >= 0) {
		is_seen = ask(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK;
		close(fd);
	}
	quiet_files_end();
	return is_seen;
}

/* Nobody of this program waits for the thread, nor for a lock that it has inside the driver. */
static bool may_sleep(void)
{
	return speculation_read(&speculation.verdict) == VERDICT_OPEN &&
	       !speculation_read(&speculation.is_leaving) && !speculation_read(&waiting);
}

void give_way(void)
{
	uint64_t start_us;
	int kept = errno;

	if (!file[0] || slept_us >= LIMIT_US)
		return;
	start_us = clock_monotonic_us();
	if (start_us - looked_us < LOOK_EVERY_US)
		return;
	looked_us = start_us;
	while (may_sleep() && slept_us < LIMIT_US && do_others_wait()) {
		speculation_wait(&speculation.verdict, VERDICT_OPEN, SLEEP_US);
		looked_us = clock_monotonic_us();
		slept_us += looked_us - start_us;
		start_us = looked_us;
	}
	errno = kept;
}

uint64_t give_way_slept_us(void)
{
	return slept_us;
}

/* The lock stays the parent's; the descriptor came along. */
static void forget_in_child(void)
{
	for (int i = 0; i < HELD_MAX; i++) {
		if (held[i])
			close(held[i] - 1);
		held[i] = 0;
	}
	__atomic_store_n(&waiting, 0, __ATOMIC_RELAXED);
}

/* Hands the descriptor to a free place; where there is none, nobody is asked. */
static int *hold(int fd)
{
	for (int i = 0; i < HELD_MAX; i++) {
		int none = 0;

		if (__atomic_compare_exchange_n(
			    &held[i], &none, fd + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return &held[i];
	}
	close(fd);
	return NULL;
}

/* At a number that is out of the program's way. Closing any descriptor of the file ends this
 * process's lock, so the low one is closed first. */
static int open_high(void)
{
	char path[sizeof(file)];
	int low = find_file(path), high;

	if (low < 0)
		return -1;
	high = (int)syscall(SYS_fcntl, low, F_DUPFD_CLOEXEC, HIGH_FIRST);
	close(low);
	return high;
}

void give_way_begin(struct give_way_wait *ret_wait)
{
	struct flock lock = {.l_type = F_RDLCK};
	int kept = errno, fd;

	if (!__atomic_exchange_n(&is_known_at_fork, 1, __ATOMIC_RELAXED))
		threads_at_fork(NULL, NULL, forget_in_child);
	__atomic_fetch_add(&waiting, 1, __ATOMIC_SEQ_CST);
	fd = open_high();
	ret_wait->held = fd < 0 ? NULL : hold(fd);
	if (ret_wait->held)
		ask(fd, F_SETLK, &lock);
	errno = kept;
}

void give_way_end(struct give_way_wait *wait)
{
	int kept = errno;

	if (wait->held)
		close(__atomic_exchange_n(wait->held, 0, __ATOMIC_ACQ_REL) - 1);
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_SEQ_CST);
	errno = kept;
}
