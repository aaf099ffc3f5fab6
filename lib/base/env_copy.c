/* Copying the environment. Runs in the user's program on any thread, also inside the loader; must
 * never fault on what another thread is changing, take a lock or allocate from the heap. */
#include "base/env_copy.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Strings are read in pieces that end with a piece of memory of this size, so that a read never
 * reaches into memory that may not be there; most fit in one. */
#define PIECE_BYTES 256

struct reader {
	pid_t self;
	bool is_plain; /* the system call is refused */
};

/* Copies from our own memory; false where there is none. */
static bool read_own(struct reader *reader, const void *from, void *to, size_t size)
{
	struct iovec local = {.iov_base = to, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)from, .iov_len = size};
	long got;

	if (!reader->is_plain) {
		got = syscall(SYS_process_vm_readv, reader->self, &local, 1L, &remote, 1L, 0L);
		if (got == (long)size)
			return true;
		if (got >= 0 || errno == EFAULT)
			return false;
		reader->is_plain = true;
	}
	memcpy(to, from, size);
	return true;
}

/* Copies a string with its NUL. Returns its size; 0 where it cannot be read or has no room. */
static size_t read_string(struct reader *reader, const char *from, char *to, size_t room)
{
	size_t done = 0;

	while (done < room) {
		size_t piece = PIECE_BYTES - ((uintptr_t)(from + done) % PIECE_BYTES);
		const char *end;

		if (piece > room - done)
			piece = room - done;
		if (!read_own(reader, from + done, to + done, piece))
			return 0;
		end = memchr(to + done, '\0', piece);
		if (end)
			return (size_t)(end - to) + 1;
		done += piece;
	}
	return 0;
}

int env_copy_take(struct env_copy *ret_copy)
{
	const size_t table = (ENV_COPY_ENTRIES + 1) * sizeof(char *), size = table + ENV_COPY_BYTES;
	struct reader reader = {.self = getpid()};
	char **source = __atomic_load_n(&environ, __ATOMIC_RELAXED), **entries, *text, *entry;
	size_t room = ENV_COPY_BYTES, count = 0;
	int kept = errno;

	/* Only the pages that are written to become memory. */
	entries = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (entries == MAP_FAILED) {
		errno = kept;
		return -ENOMEM;
	}
	text = (char *)entries + table;
	for (size_t i = 0; source && read_own(&reader, &source[i], &entry, sizeof(entry)) && entry;
		i++) {
		size_t length = read_string(&reader, entry, text, room);

		if (i == ENV_COPY_ENTRIES || (!length && room < PIECE_BYTES)) {
			munmap(entries, size);
			errno = kept;
			return -E2BIG;
		}
		if (!length)
			continue;
		entries[count++] = text;
		text += length;
		room -= length;
	}
	entries[count] = NULL;
	*ret_copy = (struct env_copy){.entries = entries, .size = size};
	errno = kept;
	return 0;
}

void env_copy_drop(struct env_copy *copy)
{
	munmap(copy->entries, copy->size);
}

const char *env_copy_find(char *const *entries, const char *name)
{
	size_t length = strlen(name);

	for (; *entries; entries++)
		if (!strncmp(*entries, name, length) && (*entries)[length] == '=')
			return *entries + length + 1;
	return NULL;
}
