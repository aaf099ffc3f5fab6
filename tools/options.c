/* Options of subcommands, by getopt_long. */
#include "options.h"

#include <getopt.h>

#define MOST_ROWS 16
#define LETTERS_SIZE (2 * MOST_ROWS + 3) /* "+h", each with a colon, and the end */
#define FIRST_ROW 256                    /* what getopt_long returns for the first row */

/* What getopt_long wants, made from the rows. */
struct tables {
	struct option names[MOST_ROWS + 2];
	char letters[LETTERS_SIZE];
};

static void make_tables(
	const struct option_row *rows, enum options_words words, struct tables *ret_tables)
{
	bool stops_at_word = words == WORDS_PROGRAM || words == WORDS_MAYBE_PROGRAM;
	struct tables tables = {.names = {{"help", no_argument, NULL, 'h'}}};
	struct option *name = tables.names + 1;
	char *letter = tables.letters;

	if (stops_at_word)
		*letter++ = '+';
	*letter++ = 'h';
	for (int i = 0; rows[i].name || rows[i].letter; i++) {
		bool has_value = !rows[i].flag;

		if (rows[i].name)
			*name++ = (struct option){rows[i].name,
				has_value ? required_argument : no_argument, NULL, FIRST_ROW + i};
		if (rows[i].letter)
			*letter++ = rows[i].letter;
		if (rows[i].letter && has_value)
			*letter++ = ':';
	}
	*ret_tables = tables;
}

static const struct option_row *find_row(const struct option_row *rows, int option)
{
	if (option >= FIRST_ROW)
		return &rows[option - FIRST_ROW];
	while (rows->letter != option)
		rows++;
	return rows;
}

static int take_value(const struct command *command, const struct option_row *row)
{
	char name[64];

	if (row->flag)
		*row->flag = true;
	else if (row->text)
		*row->text = optarg;
	else {
		snprintf(name, sizeof(name), row->name ? "--%s" : "-%.1s",
			row->name ? row->name : &row->letter);
		if (command_number(name, optarg, row->least, row->most, row->number))
			return command_usage_status(command);
	}
	return OPTIONS_TAKEN;
}

static int check_words(const struct command *command, enum options_words words, char **left)
{
	if (words == WORDS_PROGRAM && !*left) {
		command_fail(0, "%s: a program is missing", command->name);
		return command_usage(command);
	}
	if (words == WORDS_NONE && *left) {
		command_fail(0, "%s: '%s' is not expected", command->name, *left);
		return command_usage(command);
	}
	return OPTIONS_TAKEN;
}

int options_take(const struct command *command, const struct option_row *rows,
	enum options_words words, int argc, char **argv, char ***ret_words)
{
	struct tables tables;
	int option, status;

	make_tables(rows, words, &tables);
	while ((option = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
		if (option == 'h') {
			command_help(command, stdout);
			return COMMAND_OK;
		}
		if (option == '?')
			return command_usage(command);
		status = take_value(command, find_row(rows, option));
		if (status != OPTIONS_TAKEN)
			return status;
	}
	status = check_words(command, words, argv + optind);
	if (status == OPTIONS_TAKEN)
		*ret_words = argv + optind;
	return status;
}
