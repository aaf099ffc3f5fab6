/* The programs that something is done for at their very start: speculation, for the few whose first
 * lookup of cuInit comes too late, and reading files ahead.
 *
 * One small file, STATE_DIR/starts, which is all that the constructor of an ordinary process looks
 * at: the executables (device and inode), so that a process which is none of them pays for one
 * open(). For a program that is missing in it nothing happens before its first lookup. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STARTS_MAX 64 /* executables; the longest unused one goes */

/* Why an executable is listed. */
#define STARTS_SPECULATION 1u
#define STARTS_FILES 2u /* one of its programs has a list of files (files.h) */

/* The reasons for which this process's executable is listed, 0 if it isn't. open, fstat, read,
 * close, stat. A file that is damaged, foreign-owned or writable by others lists nothing. */
uint32_t starts_of_self(const char *state_dir);

/* Lists this process's executable for a reason, or no longer. Replaces the file atomically, and
 * only where that changes it. 0 or a negative errno. */
int starts_note_self(const char *state_dir, uint32_t reason, bool is_listed);
