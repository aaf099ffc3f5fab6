/* Reading files ahead of a program that starts on cold caches: what it touched in earlier runs
 * (profile/files.h), only where that is not in memory, at low I/O priority.
 *
 * It is done by threads of our own, which the constructor starts for programs of executables that
 * are listed for it (profile/starts.h) and that have a profile. They have a descriptor table of
 * their own (close_range(2) with CLOSE_RANGE_UNSHARE, Linux 5.9; on older kernels nothing is read),
 * so the program and its children never have one of theirs. Where everything is in memory they look
 * at a few dozen files and end. */
#pragma once

#include <stdbool.h>

/* From the constructor, after situation_begin. */
void read_ahead_begin(void);

/* Was a file of the list not what it was? Then the list is to be made anew. */
bool read_ahead_is_stale(void);
