/* Files that a tool and the programs it runs share by name, for as long as it runs. */
#pragma once

#include <limits.h>

/* Makes an empty file of ours alone (0600) in the runtime folder, else in /tmp, open for reading
 * and writing with CLOEXEC. The caller closes and unlinks it. 0, or -errno with the path that could
 * not be made. */
int scratch_make(const char *name, char ret_path[PATH_MAX], int *ret_fd);
