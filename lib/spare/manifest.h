/* The files that a spare has loaded something from, and the folders that could have brought
 * something else, as they were: path, inode, size, and the time of the last change of any kind. */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <time.h>

struct manifest {
	char *names; /* NUL after each */
	struct manifest_entry *entries;
	size_t count;
};

/* Reads the names from `fd` and looks at each. 0; -ESTALE, with the name, where one has been
 * changed since `start` (a realtime clock's, before the first of them was opened) or is gone, so
 * that what was loaded may be another; or -errno. */
int manifest_take(int fd, const struct timespec *start, struct manifest *ret_manifest,
	char ret_name[PATH_MAX]);

/* Whether all is as it was: 0, or -ESTALE. */
int manifest_check(const struct manifest *manifest);

void manifest_done(struct manifest *manifest);
