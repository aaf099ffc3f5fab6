/* What is known of a program for which spares are kept unasked (HEARTH_SPARE=auto): how often it
 * had a plain start, and what it imports. A small file each, STATE_DIR/spares/KEY, which
 * bootstrap.py writes at the end of a program that it has run; KEY.runs has a byte for each plain
 * start. */
#pragma once

#include "spare/command_line.h"

#include <stdbool.h>
#include <stddef.h>

#define LEARNED_RUNS 2 /* plain starts, after which a spare is kept */

struct learned {
	bool is_taught; /* there is a list */
	bool is_never;  /* no spare is to be kept, for a reason that the file gives */
	char **imports; /* in the program's order; ends with NULL; never NULL itself */
	char *text;
};

/* The path for the program that `line` names: of this interpreter with these options, and, for a
 * script, of the file as it is. Makes the folder, and removes the oldest files where there are too
 * many. 0 or -errno. */
int learned_path(const struct command_line *line, char ret_path[PATH_MAX]);

/* Reads it; a file that is not the user's own, or damaged, counts as none. 0 or -ENOMEM. */
int learned_read(const char *path, struct learned *ret_learned);
void learned_done(struct learned *learned);

/* Counts a plain start; returns how many there were, with this one, LEARNED_RUNS at most. */
unsigned learned_count(const char *path);

/* Removes the files of all programs. `profiles` is the folder beside which theirs is. */
void learned_forget(const char *profiles);

/* No spare is to be kept from now on. Failures are left alone: then it is tried again. */
void learned_give_up(const char *path, const char *reason);
