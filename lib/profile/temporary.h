/* A new file that takes its place by rename: written beside it under a name of its own. */
#pragma once

#include "profile/profile.h"

/* Opens a new file in `folder`, 0600, which is made 0700 where it is missing. A descriptor, or a
 * negative errno. The caller renames or unlinks it. */
int temporary_open(const char *folder, char ret_path[PROFILE_PATH_MAX]);

/* Writes all of it, sending no signal. 0 or a negative errno. */
int temporary_write(int fd, const void *data, size_t size);
