/* A python's command line, as far as a spare can stand for it. */
#pragma once

#include <limits.h>

enum command_line_kind {
	COMMAND_LINE_NONE,
	COMMAND_LINE_SCRIPT,
	COMMAND_LINE_MODULE,
	COMMAND_LINE_CODE
};

struct command_line {
	char python[PATH_MAX]; /* absolute, an ELF file; links in it are kept, as sys.executable
				  does */
	char **flags;          /* words[1] and on: the interpreter's own */
	int flag_count;
	enum command_line_kind kind;
	const char *target; /* the script, module or text */
	char **rest;        /* sys.argv[1] and on; ends with NULL */
	char **words;       /* all, for sys.orig_argv */
};

/* Reads `words`. 0; -ENOTSUP where it is none that a spare can run (an option that it does not
 * know, a program from stdin, a script that starts python, a path that depends on the folder),
 * -ENOENT. */
int command_line_read(char **words, struct command_line *ret_line);
