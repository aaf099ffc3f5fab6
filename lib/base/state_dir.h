/* Where runs and profiles are kept: HEARTH_STATE_DIR, else $XDG_STATE_HOME/hearth, else
 * ~/.local/state/hearth. Relative values count as unset (XDG base directory specification). */
#pragma once

#include "base/settings.h"

#include <stddef.h>

/* 0 and the folder's path; -ENOENT where no setting names one, -ENAMETOOLONG. Touches no file. */
int state_dir_path(const struct settings *settings, char *ret_path, size_t size);

/* Makes the folder `path` and what is missing above it, 0700. 0 also where it is there already;
 * else -errno. */
int state_dir_make(const char *path);
