/* `hearth report`: shows runs from the history or from HEARTH_LOG files; and forgets the history.
 */
#include "base/settings.h"
#include "base/state_dir.h"
#include "broker/history.h"
#include "command.h"
#include "launch/keeper_status.h"
#include "options.h"
#include "past.h"
#include "report/load.h"
#include "report/restarts.h"
#include "report/show.h"
#include "warn.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_RUNS 1000000
/* A home folder may lie on a network that hangs. */
#define WRITE_LIMIT_MS 1000
#define POLL_MS 10

/* A run that has just ended is in the history once the broker has noticed and written it. What it
 * answers after that, it answers after noticing: so ask it what is left to write. */
static void wait_for_broker(const struct settings *settings)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
	bool is_written = false;

	for (unsigned ms = 0; !is_written && ms < WRITE_LIMIT_MS; ms += POLL_MS) {
		struct ask_reply reply;
		json_t *status;

		if (ms)
			nanosleep(&pause, NULL);
		if (keeper_status_ask(settings, &reply, &status))
			return;
		is_written = !json_integer_value(json_object_get(status, "runs_unwritten"));
		json_decref(status);
	}
}

/* The user's own history and the machine's part of it; either may be missing. */
static int load_history(struct run_log *log)
{
	struct settings settings;
	struct past past;

	settings_read(&settings);
	wait_for_broker(&settings);
	past_load(&settings, log, &past);
	if (past.own_rc && past.own_rc != -ENOENT)
		return command_fail(COMMAND_FAILED, "%s: %s", past.own, strerror(-past.own_rc));
	if (past.system_rc && past.system_rc != -ENOENT)
		command_fail(0, "%s: %s", past.system, strerror(-past.system_rc));
	if (past.own_rc && past.system_rc)
		return command_fail(COMMAND_FAILED, "no run is recorded yet: there is no %s",
			*past.own ? past.own
				  : "state folder (HOME and HEARTH_STATE_DIR are not set)");
	return 0;
}

static int load_all(int count, char **paths, struct run_log *log)
{
	if (!count)
		return load_history(log);
	for (int i = 0; i < count; i++) {
		int rc = load_file(paths[i], log);

		if (rc)
			return command_fail(COMMAND_FAILED, "%s: %s", paths[i], strerror(-rc));
	}
	return 0;
}

static int print_log(const struct run_log *log, unsigned wanted, bool is_json)
{
	size_t first = wanted && log->count > wanted ? log->count - wanted : 0;
	struct profiles profiles = {0};
	struct settings settings;
	bool is_next = false;
	json_t *json;

	settings_read(&settings);
	past_load_profiles(&settings, &profiles);
	if (is_json) {
		json = show_json(log, first);
		warn_add_json(json, log, first, &profiles);
		profiles_done(&profiles);
		return command_print_json(json, stdout);
	}
	for (size_t i = first; i < log->count; i++) {
		if (restarts_has_later(log, i))
			continue;
		if (is_next)
			putchar('\n');
		is_next = true;
		restarts_print(log, first, i, stdout);
		show_run(&log->runs[i], stdout);
		warn_print(log, i, &profiles, stdout);
	}
	profiles_done(&profiles);
	if (fflush(stdout))
		return command_fail(COMMAND_FAILED, "stdout: %s", strerror(errno));
	if (log->damaged)
		command_fail(0, "%zu damaged line%s skipped", log->damaged,
			log->damaged == 1 ? " was" : "s were");
	if (!log->count)
		return command_fail(COMMAND_FAILED, "no run is recorded there");
	return COMMAND_OK;
}

/* What a broker has still to write is written first; the runs of programs that live come later. */
static int clear_history(void)
{
	char own[PATH_MAX], system[PATH_MAX];
	struct settings settings;
	int rc;

	settings_read(&settings);
	wait_for_broker(&settings);
	rc = state_dir_path(&settings, own, sizeof(own));
	if (!rc)
		rc = history_clear(own);
	if (rc && rc != -ENOENT)
		return command_fail(COMMAND_FAILED, "%s/" PAST_HISTORY ": %s", own, strerror(-rc));
	snprintf(system, sizeof(system), PAST_SYSTEM "/%u", (unsigned)getuid());
	rc = history_clear(system);
	if (rc && rc != -ENOENT)
		return command_fail(
			COMMAND_FAILED, "%s/" PAST_HISTORY ": %s", system, strerror(-rc));
	return COMMAND_OK;
}

static int run(int argc, char **argv)
{
	struct run_log log = {0};
	unsigned wanted = 0;
	bool is_json = false, is_clear = false;
	const struct option_row rows[] = {{.name = "json", .flag = &is_json},
		{.letter = 'n', .number = &wanted, .least = 1, .most = MAX_RUNS},
		{.name = "clear", .flag = &is_clear}, {0}};
	char **logs;
	int count = 0, rc = options_take(&command_report, rows, WORDS_ANY, argc, argv, &logs);

	if (rc != OPTIONS_TAKEN)
		return rc;
	if (is_clear && (*logs || wanted || is_json))
		return command_fail(COMMAND_USAGE,
			"report: --clear forgets what the broker has recorded: nothing else is "
			"expected beside it");
	if (is_clear)
		return clear_history();
	while (logs[count])
		count++;
	if (!count && !wanted)
		wanted = 1;
	rc = load_all(count, logs, &log);
	if (!rc)
		rc = print_log(&log, wanted, is_json);
	run_log_done(&log);
	return rc;
}

const struct command command_report = {
	.name = "report",
	.arguments = "[LOG...] [-n N] [--json] | --clear",
	.summary = "Show where the time of a run's first CUDA calls went",
	.help = "Without LOG the last run that the broker has recorded; else the runs in these\n"
		"HEARTH_LOG files (- is the standard input).\n"
		"\n"
		"  -n N     the last N runs\n"
		"  --json   as JSON\n"
		"  --clear  forget all runs that the broker has recorded\n"
		"\n"
		"waited: what the call made the program wait. hidden: what had been done ahead for "
		"it,\n"
		"or, where it says warm, what the keeper saved by estimate. at: since the "
		"program's\n"
		"start.\n",
	.run = run,
};
