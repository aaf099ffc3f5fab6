/* `hearth spare`: keeps pythons that have imported and wait for a program, tells of them, ends
 * them. `start` leaves a process of its own for each (lib/spare/hold.c) and waits until they are
 * ready. */
#include "base/clock.h"
#include "base/settings.h"
#include "broker/spawn.h"
#include "command.h"
#include "hearth/region.h"
#include "launch/wrap.h"
#include "options.h"
#include "report/table.h"
#include "spare/end.h"
#include "spare/folder.h"
#include "spare/hold.h"
#include "spare/imports.h"
#include "spare/kind.h"
#include "spare/packet.h"
#include "spare/whose.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLY_LIMIT_US 500000
#define MOST_SPARES 64
#define MOST_IDLE_S (7 * 24 * 3600)
#define DEFAULT_IDLE_S 3600
#define REPORT_SIZE 1024
#define NO_GPU UINT_MAX

struct start_request {
	unsigned count, idle_s, gpu;
	char *imports[IMPORTS_MOST + 1];
	struct command_line line;
	struct text kind;
};

/* The process is made what `hearth run` makes of itself before it runs a program. */
static int prepare(char **words, struct start_request *request)
{
	static char *python[] = {(char *)"python3", NULL};
	char library[PATH_MAX];
	struct settings settings;
	struct wrap_error error;
	int rc;

	if (wrap_find_library(sizeof(library), library, &error) ||
		wrap_set_preload(library, &error))
		return command_fail(COMMAND_FAILED, "%s", error.text);
	settings_read(&settings);
	if (settings.is_on)
		broker_spawn(&settings, NULL, NULL);
	words = words[0] ? words : python;
	rc = command_line_read(words, &request->line);
	if (!rc)
		rc = kind_make(&request->line, environ, &request->kind);
	if (rc == -ENOTSUP)
		return command_fail(COMMAND_FAILED,
			"%s: no spare can be had of it, with these options and this environment",
			words[0]);
	return rc ? command_fail(COMMAND_FAILED, "%s: %s", words[0], strerror(-rc)) : COMMAND_OK;
}

static int start_one(const struct spare_plan *plan)
{
	char report[REPORT_SIZE];
	size_t size = 0;
	ssize_t got = 1;
	int pair[2], rc;

	if (pipe2(pair, O_CLOEXEC))
		return command_fail(COMMAND_FAILED, "pipe: %s", strerror(errno));
	rc = hold_start(plan, pair[1]);
	close(pair[1]);
	while (!rc && got > 0 && size < sizeof(report) - 1) {
		got = read(pair[0], report + size, sizeof(report) - 1 - size);
		size += got > 0 ? (size_t)got : 0;
	}
	close(pair[0]);
	report[size] = '\0';
	if (rc)
		return command_fail(COMMAND_FAILED, "fork: %s", strerror(-rc));
	if (strcmp(report, "r") != 0)
		return command_fail(
			COMMAND_FAILED, "%s: %s", plan->python, size ? report : "its holder ended");
	return COMMAND_OK;
}

static int start(int argc, char **argv)
{
	struct start_request request = {.count = 1, .idle_s = DEFAULT_IDLE_S, .gpu = NO_GPU};
	const char *imports = NULL;
	const struct option_row rows[] = {{.name = "import", .text = &imports},
		{.name = "count", .number = &request.count, .least = 1, .most = MOST_SPARES},
		{.name = "idle", .number = &request.idle_s, .least = 1, .most = MOST_IDLE_S},
		{.name = "gpu", .number = &request.gpu, .most = HEARTH_MAX_DEVICES - 1}, {0}};
	struct spare_plan plan;
	char **words;
	int status = options_take(&command_spare, rows, WORDS_MAYBE_PROGRAM, argc, argv, &words);

	if (status != OPTIONS_TAKEN)
		return status;
	if (imports_split(imports, request.imports))
		return command_fail(COMMAND_USAGE, "--import: '%s' is no list of modules", imports);
	status = prepare(words, &request);
	if (status)
		return status;
	plan = (struct spare_plan){.python = request.line.python,
		.flags = request.line.flags,
		.flag_count = request.line.flag_count,
		.imports = request.imports,
		.environment = environ,
		.kind = request.kind.bytes,
		.kind_size = request.kind.size,
		.idle_s = request.idle_s,
		.parent_fd = -1,
		.page = {.device = -1,
			.has_gpu = request.gpu != NO_GPU,
			.gpu = (int)request.gpu,
			.is_named = request.line.kind != COMMAND_LINE_NONE}};
	whose_profile(&request.line, request.imports, &plan.page.identity);
	for (unsigned i = 0; !status && i < request.count; i++)
		status = start_one(&plan);
	if (!status)
		printf("%u waiting: %s\n", request.count, plan.python);
	return status;
}

static int show(int fd, const char *path, void *data)
{
	struct table *table = data;
	struct spare_message message;

	if (packet_tell(fd, SPARE_STATUS, 0) ||
		packet_receive(fd, REPLY_LIMIT_US, &message, NULL, 0, NULL))
		return 0;
	table_cell(table, "%u", message.pid);
	table_cell(table, "%s", message.value == SPARE_READY ? "waiting" : "loading");
	table_cell(table, "%u", message.age_s);
	table_cell(table, "%u", message.host_mib);
	if (message.device >= 0)
		table_cell(table, "GPU %d", message.device);
	else
		table_cell(table, "-");
	table_cell(table, "%s", message.text);
	return 0;
}

static int print_status(void)
{
	static const struct table_column columns[] = {{"pid", TABLE_RIGHT, 0},
		{"state", TABLE_LEFT, 0}, {"for s", TABLE_RIGHT, 0}, {"MiB", TABLE_RIGHT, 0},
		{"context", TABLE_LEFT, 0}, {"python, imports", TABLE_LEFT, 0}};
	struct table *table = table_new(6, columns);
	int rc = folder_each(NULL, show, table);

	if (!rc)
		table_print(table, stdout);
	table_free(table);
	if (rc)
		return command_fail(COMMAND_FAILED, "spares: %s", strerror(-rc));
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

static int run(int argc, char **argv)
{
	const struct option_row none[] = {{0}};
	const char *what = argc > 1 ? argv[1] : "";
	unsigned count = 0;
	char **words;
	int status, rc;

	if (!strcmp(what, "start")) {
		argv[1] = argv[0];
		return start(argc - 1, argv + 1);
	}
	status = options_take(&command_spare, none, WORDS_ANY, argc, argv, &words);
	if (status != OPTIONS_TAKEN)
		return status;
	if (!words[0] || words[1] || (strcmp(words[0], "stop") && strcmp(words[0], "status"))) {
		command_fail(0, "spare: '%s' is none of start, stop and status",
			words[0] && words[1] ? words[1] : what);
		return command_usage(&command_spare);
	}
	if (!strcmp(words[0], "status"))
		return print_status();
	rc = end_all(&count);
	if (rc)
		return command_fail(COMMAND_FAILED, "spares: %s", strerror(-rc));
	printf("%u ended\n", count);
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

const struct command command_spare = {
	.name = "spare",
	.arguments = "start [--import MODULE,...] [--gpu N] [--count N] [--idle SECONDS] [--] "
		     "[PYTHON [OPTION...] [PROGRAM]] | stop | status",
	.summary = "Keep pythons that have imported and wait for a program",
	.help = "  start            have spares wait for `hearth run --spare -- PYTHON OPTION... "
		"PROGRAM`;\n"
		"                   each runs one program, and another takes its place\n"
		"  stop             end those that wait; programs run on\n"
		"  status           list those that wait\n"
		"  --import MODULE,...  what they import ahead\n"
		"  --gpu N          have a context there ahead, whatever was learned\n"
		"  --count N        how many wait at a time (default: 1)\n"
		"  --idle SECONDS   a spare ends when it has waited so long (default: 3600)\n"
		"\n"
		"A context, and what programs load into it, is made ahead as earlier programs of "
		"these\n"
		"spares had it; with PROGRAM, as that program had it in its plain runs.\n"
		"\n"
		"A spare is used where everything is the same for the program as it was for the "
		"spare:\n"
		"python and its options, environment, limits, and each file that was loaded. "
		"Otherwise\n"
		"the program has a plain start; HEARTH_LOG_LEVEL=info says why.\n",
	.run = run,
};
