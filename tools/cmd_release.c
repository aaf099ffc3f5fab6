/* `hearth release`: has the broker's keeper let go of the GPUs, for resets, MIG changes and driver
 * upgrades, or has it come back. */
#include "base/settings.h"
#include "command.h"
#include "launch/ask.h"
#include "options.h"
#include "spare/end.h"
#include "tell.h"

#include <stdbool.h>
#include <stdio.h>

#define MAX_SECONDS 86400

/* They may hold contexts, and have the devices open. */
static void end_spares(void)
{
	unsigned count;

	if (!end_all(&count) && count)
		printf("%u spare%s ended\n", count, count == 1 ? "" : "s");
}

static int run(int argc, char **argv)
{
	bool is_resume = false, is_open_ended = false;
	unsigned seconds = 0;
	const struct option_row rows[] = {{.name = "until-resume", .flag = &is_open_ended},
		{.name = "resume", .flag = &is_resume},
		{.name = "for", .number = &seconds, .least = 1, .most = MAX_SECONDS}, {0}};
	struct wire_message message;
	char **words;
	int status = options_take(&command_release, rows, WORDS_NONE, argc, argv, &words);

	if (status != OPTIONS_TAKEN)
		return status;
	if (is_resume + is_open_ended + !!seconds > 1)
		return command_fail(COMMAND_USAGE,
			"release: --until-resume, --for and --resume exclude each other");
	if (!is_resume)
		end_spares();
	wire_init(&message, is_resume ? WIRE_RESUME : WIRE_RELEASE);
	message.code = is_open_ended;
	message.size = seconds;
	return tell_broker(&message);
}

const struct command command_release = {
	.name = "release",
	.arguments = "[--for SECONDS | --until-resume | --resume]",
	.summary = "Have the keeper let go of the GPUs",
	.help = "For GPU resets, MIG changes and driver upgrades. Programs run on; their cuInit is "
		"cold.\n"
		"Your spares that wait are ended (`hearth spare`).\n"
		"\n"
		"  --for SECONDS   the keeper comes back after this time (default: 60)\n"
		"  --until-resume  it stays away until it is told to come back\n"
		"  --resume        it comes back now\n"
		"\n"
		"The status is 1 where no broker runs.\n",
	.run = run,
};
