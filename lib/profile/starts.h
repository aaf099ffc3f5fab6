/* The programs that speculation starts with: the few whose first lookup of cuInit comes too late.
 *
 * One small file, STATE_DIR/starts, which is all that the constructor of an ordinary process looks
 * at: the executables (device and inode), so that a process which is none of them pays for one
 * open(). A program that is missing in it starts at its first lookup instead, as most do. */
#pragma once

#include <stdbool.h>

#define STARTS_MAX 64 /* executables; the longest unused one goes */

/* Is this process's executable listed? open, fstat, read, close, stat. A file that is damaged,
 * foreign-owned or writable by others lists nothing. */
bool starts_has_self(const char *state_dir);

/* Lists this process's executable, or removes it. Replaces the file atomically, and only where that
 * changes it. 0 or a negative errno. */
int starts_note_self(const char *state_dir, bool is_listed);
