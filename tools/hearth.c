/* `hearth`: the command line. Picks the subcommand; everything else is in cmd_*.c and under lib/.
 */
#include "base/env.h"
#include "command.h"
#include "report/table.h"

#include <stdbool.h>
#include <string.h>

static const struct command *const commands[] = {
	&command_run,
	&command_entrypoint,
	&command_report,
	&command_compare,
	&command_status,
	&command_profile,
	&command_release,
	&command_stop,
	&command_doctor,
	&command_jupyter,
	&command_spare,
	&command_mps,
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int print_usage(FILE *to)
{
	static const struct table_column columns[] = {
		{"  command", TABLE_LEFT, 0}, {"", TABLE_LEFT, 0}};
	struct table *table = table_new(2, columns);

	fputs("usage: hearth COMMAND [ARGUMENT...]\n"
	      "\n"
	      "Skips CUDA's cold start for unmodified programs, and shows where the time went.\n"
	      "\n",
		to);
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		table_cell(table, "  %s", commands[i]->name);
		table_cell(table, "%s", commands[i]->summary);
	}
	table_print(table, to);
	table_free(table);
	fputs("\n"
	      "hearth COMMAND --help explains a command, hearth help env the settings.\n"
	      "hearth --version prints the version.\n",
		to);
	return fflush(to) ? COMMAND_FAILED : COMMAND_OK;
}

static int print_environment(void)
{
	puts("Hearth's settings, environment variables all:\n");
	for (int i = 0; i < ENV_COUNT; i++) {
		const struct env_info *info = env_info((enum env_id)i);

		if (info->values)
			printf("%s=%s\n    %s (default: %s)\n", info->name, info->values,
				info->help, info->default_text);
	}
	puts("\nRead, never set by Hearth unless it says so:\n");
	for (int i = 0; i < ENV_COUNT; i++) {
		const struct env_info *info = env_info((enum env_id)i);

		if (!info->values)
			printf("%s\n    %s\n", info->name, info->help);
	}
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

static bool asks_for_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

/* `words`: what stands behind `hearth help`. */
static int help(int count, char **words)
{
	const char *topic = count ? words[0] : "help";
	const struct command *command = find(topic);

	if (count > 1)
		return command_fail(COMMAND_USAGE, "help: '%s' is not expected", words[1]);
	if (asks_for_help(topic))
		return print_usage(stdout);
	if (!strcmp(topic, "env"))
		return print_environment();
	if (!command)
		return command_fail(COMMAND_USAGE,
			"'%s' is no help topic: env, or a command that `hearth help` lists", topic);
	command_help(command, stdout);
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

int main(int argc, char **argv)
{
	const struct command *command;

	if (argc < 2) {
		print_usage(stderr);
		return COMMAND_USAGE;
	}
	if (!strcmp(argv[1], "--version") && argc > 2)
		return command_fail(COMMAND_USAGE, "--version: '%s' is not expected", argv[2]);
	if (!strcmp(argv[1], "--version"))
		return puts("hearth " HEARTH_VERSION) < 0 || fflush(stdout) ? COMMAND_FAILED
									    : COMMAND_OK;
	if (asks_for_help(argv[1]))
		return help(argc - 2, argv + 2);
	command = find(argv[1]);
	if (!command)
		return command_fail(
			COMMAND_USAGE, "'%s' is no command: `hearth help` lists them", argv[1]);
	argv[1] = "hearth";
	return command->run(argc - 1, argv + 1);
}
