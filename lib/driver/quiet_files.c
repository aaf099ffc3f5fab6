/* The descriptors of a quiet copy. The hooks run on whatever thread is inside the copy and record
 * only what its own thread opens; quiet_files_close runs in fork children, so it allocates and
 * locks nothing. */
#include "driver/quiet_files.h"

#include "base/status.h"
#include "driver/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAX_FILES 256 /* 580.159.04 has 26 open after the retain */

/* How long a fork waits for an open that is in progress, in steps of 50 us: 200 ms. */
#define PAUSE_STEP_NS 50000
#define PAUSE_STEPS 4000

struct file {
	int fd; /* -1 = closed again */
	enum quiet_stage stage;
	bool is_waited_for; /* no device and no ordinary file */
	bool is_socket;
	dev_t device;
	ino_t inode;
};

/* Written by the quiet thread alone, read by others once it has ended or in a fork child. */
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

/* Before and after each of the hooks' calls. */
static void begin(void)
{
	if (quiet_is_thread())
		take_turn(UINT_MAX);
}

static void note(int fd)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_RELAXED);
	struct stat status;

	if (fd < 0)
		return;
	if (count == MAX_FILES) {
		is_overfull = true;
		return;
	}
	files[count].fd = fd;
	files[count].stage = quiet_stage();
	if (!status_of_fd(fd, &status)) {
		files[count].device = status.st_dev;
		files[count].inode = status.st_ino;
		files[count].is_waited_for = !S_ISCHR(status.st_mode) && !S_ISREG(status.st_mode);
		files[count].is_socket = S_ISSOCK(status.st_mode);
	}
	__atomic_store_n(&file_count, count + 1, __ATOMIC_RELEASE);
}

static int opened(int fd)
{
	if (quiet_is_thread()) {
		note(fd);
		end_turn();
	}
	return fd;
}

static int opened_two(int outcome, const int ends[2])
{
	if (quiet_is_thread()) {
		if (!outcome) {
			note(ends[0]);
			note(ends[1]);
		}
		end_turn();
	}
	return outcome;
}

static int hook_open(const char *path, int flags, ...)
{
	mode_t mode = 0;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_list arguments;

		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	begin();
	return opened(open(path, flags, mode));
}

static int hook_openat(int folder, const char *path, int flags, ...)
{
	mode_t mode = 0;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_list arguments;

		va_start(arguments, flags);
		mode = va_arg(arguments, mode_t);
		va_end(arguments);
	}
	begin();
	return opened(openat(folder, path, flags, mode));
}

static int hook_mkostemp(char *template, int flags)
{
	begin();
	return opened(mkostemp(template, flags));
}

static int hook_mkstemp(char *template)
{
	begin();
	return opened(mkstemp(template));
}

static int hook_socket(int domain, int type, int protocol)
{
	begin();
	return opened(socket(domain, type, protocol));
}

static int hook_eventfd(unsigned int value, int flags)
{
	begin();
	return opened(eventfd(value, flags));
}

static int hook_epoll_create1(int flags)
{
	begin();
	return opened(epoll_create1(flags));
}

static int hook_epoll_create(int size)
{
	begin();
	return opened(epoll_create(size));
}

static int hook_dup(int fd)
{
	begin();
	return opened(dup(fd));
}

static int hook_dup3(int from, int to, int flags)
{
	begin();
	return opened(dup3(from, to, flags));
}

static int hook_pipe(int ends[2])
{
	begin();
	return opened_two(pipe(ends), ends);
}

static int hook_pipe2(int ends[2], int flags)
{
	begin();
	return opened_two(pipe2(ends, flags), ends);
}

static int hook_socketpair(int domain, int type, int protocol, int ends[2])
{
	begin();
	return opened_two(socketpair(domain, type, protocol, ends), ends);
}

static int hook_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	int outcome = -1;

	begin();
	if (quiet_is_thread() && are_names_refused)
		errno = EADDRINUSE;
	else
		outcome = bind(fd, address, length);
	if (quiet_is_thread())
		end_turn();
	return outcome;
}

/* Whoever closes it: a driver's thread may close what the quiet one opened. */
static int hook_close(int fd)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);
	int outcome;

	begin();
	for (unsigned int i = 0; i < count; i++)
		if (files[i].fd == fd)
			files[i].fd = -1;
	outcome = close(fd);
	if (quiet_is_thread())
		end_turn();
	return outcome;
}

const struct import_hook quiet_files_hooks[] = {
	{"open", (void *)hook_open},
	{"open64", (void *)hook_open},
	{"openat", (void *)hook_openat},
	{"openat64", (void *)hook_openat},
	{"mkostemp", (void *)hook_mkostemp},
	{"mkostemp64", (void *)hook_mkostemp},
	{"mkstemp", (void *)hook_mkstemp},
	{"mkstemp64", (void *)hook_mkstemp},
	{"bind", (void *)hook_bind},
	{"socket", (void *)hook_socket},
	{"socketpair", (void *)hook_socketpair},
	{"eventfd", (void *)hook_eventfd},
	{"epoll_create", (void *)hook_epoll_create},
	{"epoll_create1", (void *)hook_epoll_create1},
	{"dup", (void *)hook_dup},
	{"dup3", (void *)hook_dup3},
	{"pipe", (void *)hook_pipe},
	{"pipe2", (void *)hook_pipe2},
	{"close", (void *)hook_close},
};
const size_t quiet_files_hook_count = sizeof(quiet_files_hooks) / sizeof(*quiet_files_hooks);

static bool is_same(const struct file *file)
{
	struct stat status;

	return !status_of_fd(file->fd, &status) && status.st_dev == file->device &&
	       status.st_ino == file->inode;
}

bool quiet_files_are_valid(void)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < count; i++)
		if (files[i].fd >= 0 && !is_same(&files[i]))
			return false;
	return !is_overfull;
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
