/* `hearth compare`: the same program natively and through Hearth, by turns, and where the time of
 * its first CUDA calls went. */
#include "command.h"
#include "compare_arms.h"
#include "options.h"
#include "report/table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_ROUNDS 3
#define MAX_PROGRAM 80 /* characters of the command line shown */

/* The command line as it is shown, its paths cut to their last part. */
static char *describe(char **words)
{
	char text[4 * MAX_PROGRAM] = "";
	size_t length = 0;

	for (size_t i = 0; words[i] && length < MAX_PROGRAM; i++) {
		const char *slash = strrchr(words[i], '/');

		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%.*s",
			i ? " " : "", MAX_PROGRAM, slash && slash[1] ? slash + 1 : words[i]);
	}
	return table_text_clean(text);
}

static int compare(unsigned rounds, const char *keep_output, bool is_json, char **words)
{
	struct comparison *comparison = calloc(1, sizeof(*comparison));
	char *program = describe(words);
	struct arms arms;
	int rc;

	if (!comparison || !program)
		return command_fail(COMMAND_FAILED, "out of memory");
	comparison->program = program;
	rc = arms_open(keep_output, words, comparison, &arms);
	arms.is_quiet = is_json || !isatty(STDERR_FILENO);
	if (!rc)
		rc = arms_run(&arms, rounds);
	arms_close(&arms);
	if (!rc) {
		compare_judge(comparison);
		if (is_json)
			rc = command_print_json(compare_json(comparison), stdout);
		else
			compare_print(comparison, stdout);
		if (fflush(stdout))
			rc = command_fail(COMMAND_FAILED, "stdout: %s", strerror(errno));
	}
	free(program);
	free(comparison);
	return rc;
}

static int run(int argc, char **argv)
{
	unsigned rounds = DEFAULT_ROUNDS;
	const char *keep_output = NULL;
	bool is_json = false;
	const struct option_row rows[] = {
		{.letter = 'n', .number = &rounds, .least = 1, .most = COMPARE_MAX_ROUNDS},
		{.name = "json", .flag = &is_json}, {.name = "keep-output", .text = &keep_output},
		{0}};
	char **words;
	int status = options_take(&command_compare, rows, WORDS_PROGRAM, argc, argv, &words);

	return status == OPTIONS_TAKEN ? compare(rounds, keep_output, is_json, words) : status;
}

const struct command command_compare = {
	.name = "compare",
	.arguments = "[-n ROUNDS] [--json] [--keep-output FILE] [--] PROGRAM [ARGUMENT...]",
	.summary = "Run a program natively and through Hearth, by turns, and compare",
	.help = "Natively means: no broker, the keeper released, the GPU idle for 5 s (0 on the\n"
		"simulated driver); libhearth.so only looks on. One run before is not counted.\n"
		"The program gets no input; its output is thrown away.\n"
		"\n"
		"  -n ROUNDS           how often each (default: 3)\n"
		"  --json              as JSON, in microseconds\n"
		"  --keep-output FILE  append the program's stdout and stderr to FILE\n"
		"\n"
		"other first calls: what the program waited in CUDA calls besides cuInit and "
		"contexts.\n"
		"whole program: from its start to its end. A program that fails ends the "
		"comparison,\n"
		"with status 1.\n",
	.run = run,
};
