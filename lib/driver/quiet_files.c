/* The descriptors of a quiet copy. The hooks run on whatever thread is inside the copy and record
 * only what its own thread opens; quiet_files_close runs in fork children, so it allocates and
 * locks nothing. */
#include "driver/quiet_files.h"

#include "base/status.h"
#include "driver/quiet.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILES 256 /* 580.159.04 has 26 open after the retain */

struct file {
	int fd; /* -1 = closed again */
	dev_t device;
	ino_t inode;
};

/* Written by the quiet thread alone, read by others once it has ended or in a fork child. */
static struct file files[MAX_FILES];
static unsigned int file_count;
static bool is_overfull;

static int opened(int fd)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_RELAXED);
	struct stat status;

	if (fd < 0 || !quiet_is_thread())
		return fd;
	if (count == MAX_FILES) {
		is_overfull = true;
		return fd;
	}
	files[count].fd = fd;
	if (!status_of_fd(fd, &status)) {
		files[count].device = status.st_dev;
		files[count].inode = status.st_ino;
	}
	__atomic_store_n(&file_count, count + 1, __ATOMIC_RELEASE);
	return fd;
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
	return opened(open(path, flags, mode));
}

static int hook_socket(int domain, int type, int protocol)
{
	return opened(socket(domain, type, protocol));
}

static int hook_eventfd(unsigned int value, int flags)
{
	return opened(eventfd(value, flags));
}

static int hook_dup(int fd)
{
	return opened(dup(fd));
}

static int hook_dup3(int from, int to, int flags)
{
	return opened(dup3(from, to, flags));
}

static int hook_pipe(int ends[2])
{
	int outcome = pipe(ends);

	if (!outcome) {
		opened(ends[0]);
		opened(ends[1]);
	}
	return outcome;
}

static int hook_pipe2(int ends[2], int flags)
{
	int outcome = pipe2(ends, flags);

	if (!outcome) {
		opened(ends[0]);
		opened(ends[1]);
	}
	return outcome;
}

/* Whoever closes it: a driver's thread may close what the quiet one opened. */
static int hook_close(int fd)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < count; i++)
		if (files[i].fd == fd)
			files[i].fd = -1;
	return close(fd);
}

const struct import_hook quiet_files_hooks[] = {
	{"open", (void *)hook_open},
	{"open64", (void *)hook_open},
	{"socket", (void *)hook_socket},
	{"eventfd", (void *)hook_eventfd},
	{"dup", (void *)hook_dup},
	{"dup3", (void *)hook_dup3},
	{"pipe", (void *)hook_pipe},
	{"pipe2", (void *)hook_pipe2},
	{"close", (void *)hook_close},
};
const size_t quiet_files_hook_count = sizeof(quiet_files_hooks) / sizeof(*quiet_files_hooks);

bool quiet_files_are_valid(void)
{
	for (unsigned int i = 0; i < file_count; i++) {
		struct stat status;

		if (files[i].fd >= 0 &&
			(status_of_fd(files[i].fd, &status) || status.st_dev != files[i].device ||
				status.st_ino != files[i].inode))
			return false;
	}
	return !is_overfull;
}

void quiet_files_close(void)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < count; i++) {
		if (files[i].fd >= 0)
			close(files[i].fd);
		files[i].fd = -1;
	}
}

unsigned int quiet_files_count(void)
{
	unsigned int count = __atomic_load_n(&file_count, __ATOMIC_ACQUIRE), open_files = 0;

	for (unsigned int i = 0; i < count; i++)
		open_files += files[i].fd >= 0;
	return open_files;
}
