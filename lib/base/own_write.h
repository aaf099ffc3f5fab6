/* Writing for ourselves inside the user's program, which a reader that has gone (SIGPIPE) or a
 * limit on file sizes (SIGXFSZ) must not end: the write fails, and that is all. What the program
 * itself had pending stays so. No lock, no allocation; errno is that of what was done in between.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct own_write {
	sigset_t kept; /* the thread's mask */
	sigset_t ours; /* what can only have come from our own writing */
};

void own_write_begin(struct own_write *ret_guard);
void own_write_end(const struct own_write *guard, bool has_failed);

/* write(), between the two. */
ssize_t own_write(int fd, const void *data, size_t size);
