/* Whose profile says what a spare does ahead. */
#pragma once

#include "profile/identity.h"
#include "spare/command_line.h"

/* The program's that `line` names, as its plain start would be known; where it names none, that of
 * all spares of this interpreter, with these options and imports. `imports` ends with NULL. */
void whose_profile(
	const struct command_line *line, char *const *imports, struct identity *ret_identity);
