/* `hearth stop`: ends the broker, cleanly and at once. Programs run on. */
#include "command.h"
#include "launch/ask.h"
#include "options.h"
#include "tell.h"

static int run(int argc, char **argv)
{
	const struct option_row rows[] = {{0}};
	struct wire_message message;
	char **words;
	int status = options_take(&command_stop, rows, WORDS_NONE, argc, argv, &words);

	if (status != OPTIONS_TAKEN)
		return status;
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
