/* `hearth stop`: ends the broker, cleanly and at once. Programs run on. */
#include "command.h"
#include "launch/ask.h"
#include "tell.h"

#include <getopt.h>

static int run(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	struct wire_message message;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (option != 'h')
			return command_usage(&command_stop, COMMAND_USAGE);
		command_help(&command_stop, stdout);
		return COMMAND_OK;
	}
	if (optind < argc) {
		command_fail(0, "stop: '%s' is not expected", argv[optind]);
		return command_usage(&command_stop, COMMAND_USAGE);
	}
	wire_init(&message, WIRE_STOP);
	return tell_broker(&message);
}

const struct command command_stop = {
	.name = "stop",
	.arguments = "",
	.summary = "End the broker and its keeper, cleanly and at once",
	.help = "Programs run on without it. `hearth run` starts another one.\n"
		"\n"
		"The status is 1 where no broker runs.\n",
	.run = run,
};
