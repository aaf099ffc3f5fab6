/* The subcommands of `hearth`. Each has one file, cmd_NAME.c, one row in hearth.c, and its own
 * --help. */
#pragma once

#include <jansson.h>
#include <stdio.h>

/* Exit statuses of every subcommand but run, whose status is its program's. */
#define COMMAND_OK 0
#define COMMAND_FAILED 1
#define COMMAND_USAGE 2

struct command {
	const char *name;
	const char *arguments;             /* "[--report] [--] PROGRAM [ARGUMENT...]" */
	const char *summary;               /* one line */
	const char *help;                  /* options and what they do, with a newline at its end */
	int (*run)(int argc, char **argv); /* argv[0] is "hearth", for messages */
	int usage_status;                  /* for a wrong command line; 0 = COMMAND_USAGE */
};

extern const struct command command_compare;
extern const struct command command_profile;
extern const struct command command_doctor;
extern const struct command command_entrypoint;
extern const struct command command_jupyter;
extern const struct command command_mps;
extern const struct command command_release;
extern const struct command command_report;
extern const struct command command_run;
extern const struct command command_spare;
extern const struct command command_status;
extern const struct command command_stop;

/* Usage, summary and help of one subcommand. */
void command_help(const struct command *command, FILE *to);

/* "hearth: message\n" on stderr; returns `status`. */
__attribute__((format(printf, 2, 3))) int command_fail(int status, const char *format, ...);

/* The status for a wrong command line; and the same after naming the command's --help. */
int command_usage_status(const struct command *command);
int command_usage(const struct command *command);

/* A whole number between `least` and `most`, or command_fail's status after a message. */
int command_number(
	const char *option, const char *text, unsigned least, unsigned most, unsigned *ret_number);

/* Prints JSON and a newline, and releases it; COMMAND_FAILED where that failed. */
int command_print_json(json_t *json, FILE *to);
