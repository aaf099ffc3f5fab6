/* `hearth release`: has the broker's keeper let go of the GPUs, for resets, MIG changes and driver
 * upgrades, or has it come back. */
#include "base/settings.h"
#include "command.h"
#include "launch/ask.h"
#include "tell.h"

#include <getopt.h>
#include <stdbool.h>

#define MAX_SECONDS 86400

static int run(int argc, char **argv)
{
	static const struct option options[] = {{"until-resume", no_argument, NULL, 'u'},
		{"resume", no_argument, NULL, 'r'}, {"for", required_argument, NULL, 'f'},
		{"help", no_argument, NULL, 'h'}, {0}};
	struct wire_message message;
	bool is_resume = false, is_open_ended = false;
	unsigned seconds = 0;
	int option, rc;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (option) {
		case 'u':
			is_open_ended = true;
			break;
		case 'r':
			is_resume = true;
			break;
		case 'f':
			rc = command_number("--for", optarg, 1, MAX_SECONDS, &seconds);
			if (rc)
				return rc;
			break;
		case 'h':
			command_help(&command_release, stdout);
			return COMMAND_OK;
		default:
			return command_usage(&command_release, COMMAND_USAGE);
		}
	}
	if (optind < argc) {
		command_fail(0, "release: '%s' is not expected", argv[optind]);
		return command_usage(&command_release, COMMAND_USAGE);
	}
	if (is_resume + is_open_ended + !!seconds > 1)
		return command_fail(COMMAND_USAGE,
			"release: --until-resume, --for and --resume exclude each other");
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
		"\n"
		"  --for SECONDS   the keeper comes back after this time (default: 60)\n"
		"  --until-resume  it stays away until it is told to come back\n"
		"  --resume        it comes back now\n"
		"\n"
		"The status is 1 where no broker runs.\n",
	.run = run,
};
