/* Spares that are kept unasked, of programs that were run before (HEARTH_SPARE=auto). */
#pragma once

#include "base/settings.h"
#include "spare/command_line.h"
#include "spare/text.h"

struct unasked {
	char path[PATH_MAX]; /* of what is learned; empty where no spare can be kept */
	struct text kind;    /* of the spares of this program alone */
};

/* For a start of this kind. Where no state folder can be had, or memory, nothing is kept. */
void unasked_find(
	const struct command_line *line, const struct text *kind, struct unasked *ret_unasked);

/* Counts a plain start, and starts a spare where there were enough and none is there. What it has
 * not learned it learns from the program that it runs first; that one's place is taken when it has
 * ended. Returns at once. */
void unasked_begin(const struct command_line *line, const struct settings *settings,
	const struct unasked *unasked);

void unasked_done(struct unasked *unasked);
