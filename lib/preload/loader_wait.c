/* Seeing who waits for the loader's lock. Runs in the user's program, on a thread that has waited
 * for the speculation longer than is usual, perhaps under that very lock; must take no lock itself.
 *
 * The kernel tells which call each thread is in (man 5 proc, /proc/PID/task/TID/syscall); waiting
 * for a mutex is the call futex on its address, and the loader's mutexes lie in its own data. */
#include "preload/loader_wait.h"

#include "base/number.h"
#include "driver/loaded.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOADER "ld-linux-x86-64.so.2"
#define TEXT_MAX 256
#define FUTEX "202 0x" /* SYS_futex */
static_assert(SYS_futex == 202, "the call's number on x86-64");

/* One record of getdents64, as the kernel lays it out (man 2 getdents). */
struct directory_record {
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

static bool is_in_loader(uintptr_t address)
{
	struct loaded object;

	return !loaded_find_address((const void *)address, &object) && object.soname &&
	       !strcmp(object.soname, LOADER);
}

/* "202 0x7f.. 0x80 ...": a futex's number and address. */
static bool read_futex(const char *text, uintptr_t *ret_address)
{
	size_t length = strlen(FUTEX);

	if (strncmp(text, FUTEX, length))
		return false;
	text += length;
	*ret_address = (uintptr_t)number_hex(&text);
	return true;
}

static bool is_waiting(int folder, const char *thread)
{
	char text[TEXT_MAX];
	uintptr_t address;
	ssize_t length;
	int task, fd;

	task = openat(folder, thread, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (task < 0)
		return false;
	fd = openat(task, "syscall", O_RDONLY | O_CLOEXEC);
	close(task);
	if (fd < 0)
		return false;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	return read_futex(text, &address) && is_in_loader(address);
}

bool loader_wait_is_seen(pid_t thread)
{
	int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC), kept = errno;
	_Alignas(struct directory_record) char buffer[4096];
	bool is_seen = false;
	char wanted[16]; /* a pid's digits */
	long length;

	snprintf(wanted, sizeof(wanted), "%d", (int)thread);
	while (folder >= 0 && !is_seen &&
		(length = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < length && !is_seen;) {
			struct directory_record *record = (struct directory_record *)(buffer + at);

			at += record->length;
			is_seen = record->name[0] != '.' &&
				  (!thread || !strcmp(record->name, wanted)) &&
				  is_waiting(folder, record->name);
		}
	}
	if (folder >= 0)
		close(folder);
	errno = kept;
	return is_seen;
}
