/* The descriptors of a quiet copy: the table of them. It changes on the threads that work for the
 * speculation and is read by any; quiet_files_close runs in fork children, so it allocates and
 * locks nothing. */
#include "driver/quiet_files.h"

#include "base/status.h"
#include "driver/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_FILES 256 /* 580.159.04 has 26 open after the retain */

/* How long a fork waits for an open that is in progress, in steps of 50 us: 200 ms. */
#define PAUSE_STEP_NS 50000
#define PAUSE_STEPS 4000

/* What the speculation opens is moved here, out of the program's way: its next descriptor is to
 * have the number that it would have had. Below what select can bear; where fewer are allowed,
 * nothing is moved. */
#define HIGH_FIRST 768
#define HIGH_END 1024

struct file {
	int fd; /* -1 = closed again; written last */
	enum quiet_stage stage;
	bool is_waited_for; /* no device and no ordinary file */
	bool is_socket;
	dev_t device;
	ino_t inode;
};

/* Whoever has the turn writes. */
static struct file files[MAX_FILES];
static unsigned int file_count;
static bool is_overfull;
static bool are_names_refused;

/* The thread that is between opening and noting, or that forks; 0 = nobody. */
static uint32_t busy;

static bool take_turn(unsigned int steps)
{
	const struct timespec step = {.tv_nsec = PAUSE_STEP_NS};
	uint32_t nobody = 0, self = (uint32_t)syscall(SYS_gettid);

	while (!__atomic_compare_exchange_n(
		&busy, &nobody, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (!steps--)
			return false;
		nobody = 0;
		nanosleep(&step, NULL);
	}
	return true;
}

static void end_turn(void)
{
	uint32_t self = (uint32_t)syscall(SYS_gettid);

	__atomic_compare_exchange_n(&busy, &self, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void quiet_files_begin(void)
{
	/* Who works for the speculation waits as long as a fork takes. */
	take_turn(quiet_is_working() ? UINT_MAX : PAUSE_STEPS);
}

void quiet_files_end(void)
{
	end_turn();
}

static int move_up(int fd)
{
	int flags = (int)syscall(SYS_fcntl, fd, F_GETFD), kept = errno, high;
	struct rlimit limit;

	if (fd >= HIGH_FIRST || getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur < HIGH_END)
		return fd;
	high = (int)syscall(
		SYS_fcntl, fd, flags & FD_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, HIGH_FIRST);
	if (high >= HIGH_END) {
		close(high);
		high = -1;
	}
	errno = kept;
	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* The place of that number, else one that is free. NULL where there is none. */
static struct file *place_of(int fd)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_RELAXED);
	struct file *free_place = NULL;

	for (unsigned int i = 0; i < count; i++) {
		if (files[i].fd == fd)
			return &files[i];
		if (files[i].fd < 0 && !free_place)
			free_place = &files[i];
	}
	if (free_place || count == MAX_FILES)
		return free_place;
	files[count].fd = -1;
	__atomic_store_n(&file_count, count + 1, __ATOMIC_RELEASE);
	return &files[count];
}

void quiet_files_note(int fd)
{
	struct file *file = place_of(fd);
	struct stat status = {0};

	if (!file) {
		is_overfull = true;
		return;
	}
	status_of_fd(fd, &status);
	file->stage = quiet_stage();
	file->device = status.st_dev;
	file->inode = status.st_ino;
	file->is_waited_for = !S_ISCHR(status.st_mode) && !S_ISREG(status.st_mode);
	file->is_socket = S_ISSOCK(status.st_mode);
	__atomic_store_n(&file->fd, fd, __ATOMIC_RELEASE);
}

int quiet_files_add(int fd)
{
	if (fd < 0 || !quiet_is_working())
		return fd;
	fd = move_up(fd);
	quiet_files_note(fd);
	return fd;
}

void quiet_files_forget(int fd)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < count; i++)
		if (files[i].fd == fd)
			files[i].fd = -1;
}

bool quiet_files_are_names_refused(void)
{
	return are_names_refused && quiet_is_working();
}

static bool is_same(const struct file *file)
{
	struct stat status;

	return !status_of_fd(file->fd, &status) && status.st_dev == file->device &&
	       status.st_ino == file->inode;
}

bool quiet_files_are_valid(void)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);
	bool are_valid = !is_overfull;

	/* Not while one is being closed. */
	take_turn(PAUSE_STEPS);
	for (unsigned int i = 0; i < count && are_valid; i++)
		are_valid = files[i].fd < 0 || is_same(&files[i]);
	end_turn();
	return are_valid;
}

void quiet_files_close(enum quiet_stage from)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < count; i++) {
		if (files[i].stage < from)
			continue;
		if (files[i].fd >= 0 && is_same(&files[i]))
			close(files[i].fd);
		files[i].fd = -1;
	}
}

void quiet_files_silence(void)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < count; i++) {
		struct stat status;
		int event;

		if (!files[i].is_waited_for || files[i].fd < 0 ||
			!status_of_fd(files[i].fd, &status))
			continue;
		event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (event >= 0 && event != files[i].fd) {
			dup3(event, files[i].fd, O_CLOEXEC);
			close(event);
		}
	}
}

void quiet_files_refuse_names(void)
{
	/* Not between the quiet thread's look and its bind. */
	take_turn(PAUSE_STEPS);
	are_names_refused = true;
	end_turn();
}

void quiet_files_accept_retired(void)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < count; i++) {
		struct stat status;

		if (!files[i].is_socket || files[i].fd < 0 || is_same(&files[i]) ||
			status_of_fd(files[i].fd, &status) || (status.st_mode & S_IFMT))
			continue;
		files[i].device = status.st_dev;
		files[i].inode = status.st_ino;
	}
}

void quiet_files_before_fork(void)
{
	take_turn(PAUSE_STEPS);
}

void quiet_files_after_fork(bool is_child)
{
	/* The thread that had the turn may not be there. */
	if (is_child)
		__atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
	else
		end_turn();
}

unsigned int quiet_files_count(void)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE), open_files = 0;

	for (unsigned int i = 0; i < count; i++)
		open_files += files[i].fd >= 0;
	return open_files;
}
