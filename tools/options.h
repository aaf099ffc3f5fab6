/* The options of a subcommand: a table says where each value goes; -h and --help are always there.
 */
#pragma once

#include "command.h"

#include <stdbool.h>

/* A name, a letter or both; and one place for the value, which is written where the option is
 * given. The table ends with an empty row. */
struct option_row {
	const char *name; /* "json", or NULL */
	char letter;      /* 'n', or 0 */
	bool *flag;
	const char **text;
	unsigned *number; /* from `least` to `most` */
	unsigned least, most;
};

enum options_words {
	WORDS_NONE,
	WORDS_ANY,          /* also between options */
	WORDS_PROGRAM,      /* one at least; what stands behind the first is the program's */
	WORDS_MAYBE_PROGRAM /* the same, or none */
};

/* Parses the command line (argv[0] is for messages). OPTIONS_TAKEN, with the words that are left in
 * ret_words, which ends with NULL; or the status to end with, everything having been said. */
#define OPTIONS_TAKEN (-1)
int options_take(const struct command *command, const struct option_row *rows,
	enum options_words words, int argc, char **argv, char ***ret_words);
