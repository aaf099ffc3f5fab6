/* What the subcommands share: help, messages, numbers, JSON. */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

void command_help(const struct command *command, FILE *to)
{
	fprintf(to, "usage: hearth %s%s%s\n\n%s.\n\n%s", command->name,
		*command->arguments ? " " : "", command->arguments, command->summary,
		command->help);
}

int command_fail(int status, const char *format, ...)
{
	va_list words;

	fflush(stdout);
	fputs("hearth: ", stderr);
	va_start(words, format);
	vfprintf(stderr, format, words);
	va_end(words);
	fputc('\n', stderr);
	return status;
}

int command_usage_status(const struct command *command)
{
	return command->usage_status ? command->usage_status : COMMAND_USAGE;
}

int command_usage(const struct command *command)
{
	return command_fail(command_usage_status(command),
		"usage: hearth %s%s%s; more in `hearth %s --help`", command->name,
		*command->arguments ? " " : "", command->arguments, command->name);
}

int command_number(
	const char *option, const char *text, unsigned least, unsigned most, unsigned *ret_number)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || value < least || value > most)
		return command_fail(COMMAND_USAGE, "%s: '%s' is not a number from %u to %u", option,
			text, least, most);
	*ret_number = (unsigned)value;
	return 0;
}

int command_print_json(json_t *json, FILE *to)
{
	int rc = json ? json_dumpf(json, to, JSON_INDENT(2)) : -1;

	json_decref(json);
	if (rc || fputc('\n', to) == EOF || fflush(to))
		return command_fail(COMMAND_FAILED, "writing JSON failed");
	return COMMAND_OK;
}
