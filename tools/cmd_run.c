/* `hearth run`: puts a program under Hearth and becomes it. Waits for a broker that it has
 * started, a moment; keeps nothing open in the program. With --report it stays, as the program's
 * parent, and shows the run's first calls when it has ended. */
#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/no_mps.h"
#include "base/settings.h"
#include "broker/spawn.h"
#include "command.h"
#include "launch/child.h"
#include "launch/keeper_status.h"
#include "launch/scratch.h"
#include "launch/wrap.h"
#include "mps/attach.h"
#include "mps/judge.h"
#include "options.h"
#include "past.h"
#include "report/findings.h"
#include "report/load.h"
#include "report/show.h"
#include "spare/adopt.h"
#include "spare/imports.h"
#include "spare/keep.h"
#include "warn.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct request {
	bool is_report, is_json, is_eager, is_spare, is_mps;
	struct attach_wish mps;
	const char *task, *log, *keep;
	char *imports[IMPORTS_MOST + 1]; /* of `keep` */
	char **words;
};

/* What is known before the program runs, and is said below its report. */
struct standing {
	struct settings settings;
	bool has_no_broker;
	char why[SPAWN_WHY_SIZE]; /* then: the reason */
};

/* The log that --report reads: the user's, what it is added by this run, or one of our own. */
struct record_log {
	char path[PATH_MAX];
	uint64_t began_us; /* realtime */
	bool is_ours;
};

static int parse(int argc, char **argv, struct request *ret_request)
{
	struct request request = {0};
	const struct option_row rows[] = {{.name = "report", .flag = &request.is_report},
		{.name = "json", .flag = &request.is_json},
		{.name = "eager", .flag = &request.is_eager},
		{.name = "spare", .flag = &request.is_spare},
		{.name = "keep", .text = &request.keep}, {.name = "mps", .flag = &request.is_mps},
		{.name = "mem", .text = &request.mps.memory},
		{.name = "threads", .text = &request.mps.threads},
		{.name = "priority", .text = &request.mps.priority},
		{.name = "task", .text = &request.task}, {.name = "log", .text = &request.log},
		{0}};
	int status = options_take(&command_run, rows, WORDS_PROGRAM, argc, argv, &request.words);

	request.is_report |= request.is_json;
	*ret_request = request;
	return status;
}

/* The program says nothing about a log that it cannot write; so what can be known now is said. */
static int check_log(const char *given, const char *path)
{
	char folder[2 * PATH_MAX];
	struct stat info;

	snprintf(folder, sizeof(folder), "%s", path);
	*(strrchr(folder, '/') + 1) = '\0';
	if (!strchr(folder, '%') && stat(folder, &info) < 0)
		return command_fail(CHILD_OWN_ERROR, "--log %s: %s", given, strerror(errno));
	if (!stat(path, &info) && S_ISDIR(info.st_mode))
		return command_fail(CHILD_OWN_ERROR, "--log %s: %s", given, strerror(EISDIR));
	return 0;
}

/* HEARTH_LOG for the program, absolute: it may change its folder before its first call. */
static int set_log(const char *path)
{
	char folder[PATH_MAX], whole[2 * PATH_MAX];
	const char *given = path;

	if (path[0] != '/') {
		if (!getcwd(folder, sizeof(folder)))
			return command_fail(CHILD_OWN_ERROR, "working folder: %s", strerror(errno));
		snprintf(whole, sizeof(whole), "%s/%s", folder, path);
		path = whole;
	}
	if (setenv("HEARTH_LOG", path, 1))
		return command_fail(CHILD_OWN_ERROR, "HEARTH_LOG: %s", strerror(errno));
	return check_log(given, path);
}

/* A Jupyter kernel is known by its notebook, its other runs by it too. */
static const char *task_of(const struct request *request)
{
	const char *notebook = env_get(ENV_JPY_SESSION_NAME), *slash;

	if (request->task || !notebook || env_get(ENV_HEARTH_TASK))
		return request->task;
	slash = strrchr(notebook, '/');
	return slash ? slash + 1 : notebook;
}

static int set_environment(const struct request *request)
{
	char library[PATH_MAX];
	struct wrap_error error;
	const char *task;

	if (wrap_find_library(sizeof(library), library, &error) ||
		wrap_set_preload(library, &error))
		return command_fail(CHILD_OWN_ERROR, "%s", error.text);
	task = task_of(request);
	if (task && setenv("HEARTH_TASK", task, 1))
		return command_fail(CHILD_OWN_ERROR, "HEARTH_TASK: %s", strerror(errno));
	return request->log ? set_log(request->log) : 0;
}

static int exec_failed(const char *program, int error)
{
	return command_fail(child_exec_status(error), "%s: %s", program, strerror(error));
}

static int open_record_log(struct record_log *ret_log)
{
	const char *users = env_get(ENV_HEARTH_LOG);
	struct record_log log = {.began_us = clock_realtime_us(), .is_ours = !users};
	int fd, rc;

	if (users) {
		if (strlen(users) >= sizeof(log.path))
			return command_fail(CHILD_OWN_ERROR, "HEARTH_LOG: the path is too long");
		strcpy(log.path, users);
	} else {
		rc = scratch_make("report", log.path, &fd);
		if (rc)
			return command_fail(CHILD_OWN_ERROR, "%s: %s", log.path, strerror(-rc));
		close(fd);
		setenv("HEARTH_LOG", log.path, 1);
	}
	*ret_log = log;
	return 0;
}

/* What only the parent has seen: the end, and how long it took. */
static void complete(struct run_log *runs, const struct child_end *end)
{
	for (size_t i = runs->count; i-- > 0;) {
		struct run *run = &runs->runs[i];
		char *exit = strdup(WIFSIGNALED(end->status) ? "killed" : "exited");

		if (run->pid != end->pid || !exit) {
			free(exit);
			continue;
		}
		run->duration_us = end->wall_us;
		free(run->exit);
		run->exit = exit;
		return;
	}
}

/* What stood in Hearth's way altogether. */
static void find_standing(const struct standing *standing, struct findings *findings)
{
	if (!standing->settings.is_on) {
		findings_add(findings, "off", SEVERITY_WARNING,
			"HEARTH=0: Hearth is switched off, and nothing was recorded");
		findings_remedy(findings, "unset HEARTH");
	} else if (standing->has_no_broker) {
		findings_add(findings, "broker", SEVERITY_WARNING,
			"no broker could be started, so nothing is kept warm: %s", standing->why);
		findings_remedy(findings, "`hearth doctor` says what it looks at");
	}
}

static void print_text(const struct request *request, const struct standing *standing,
	const struct run_log *log, size_t first, const struct findings *findings)
{
	struct profiles profiles = {0};

	past_load_profiles(&standing->settings, &profiles);
	for (size_t i = first; i < log->count; i++) {
		fputc('\n', stderr);
		show_run(&log->runs[i], stderr);
		warn_print(log, i, &profiles, stderr);
	}
	profiles_done(&profiles);
	findings_print_warnings(findings, stderr);
	if (first == log->count && standing->settings.is_on)
		command_fail(0, "%s: no CUDA call was seen; `hearth doctor` may say why",
			request->words[0]);
	if (log->damaged)
		command_fail(0, "%zu damaged lines were skipped", log->damaged);
}

static void print_json(const struct standing *standing, const struct run_log *log, size_t first,
	const struct findings *findings)
{
	json_t *json = show_json(log, first);
	struct profiles profiles = {0};

	past_load_profiles(&standing->settings, &profiles);
	warn_add_json(json, log, first, &profiles);
	json_object_set_new(json, "warnings", warn_to_json(findings));
	profiles_done(&profiles);
	command_print_json(json, stderr);
}

/* Some warnings are about what a program does in each run: so the runs before are looked at too.
 * Shows what was there before `began_us` not at all, whatever it is. */
static void print_runs(const struct request *request, const struct standing *standing,
	uint64_t began_us, struct run_log *runs)
{
	struct findings findings = {0};
	struct run_log log = {0};
	struct past past;
	size_t first;

	past_load(&standing->settings, &log, &past);
	run_log_drop_from(&log, began_us);
	log.damaged = 0; /* `hearth report` says so */
	first = log.count;
	run_log_append(&log, runs);
	find_standing(standing, &findings);
	if (request->is_json)
		print_json(standing, &log, first, &findings);
	else
		print_text(request, standing, &log, first, &findings);
	findings_done(&findings);
	run_log_done(&log);
}

static int run_and_report(const struct request *request, const struct standing *standing)
{
	struct child_options options = {.stdin_fd = -1,
		.stdout_fd = -1,
		.stderr_fd = -1,
		.is_eager = request->is_eager,
		.words = request->words};
	struct record_log log;
	struct run_log runs = {0};
	struct child_end end;
	int rc = open_record_log(&log), load_rc;

	if (rc)
		return rc;
	rc = child_run(&options, &end);
	load_rc = rc            ? 0
		  : log.is_ours ? load_file(log.path, &runs)
				: load_pattern(log.path, log.began_us, &runs);
	if (log.is_ours)
		unlink(log.path);
	else
		runs.damaged = 0; /* by whom, and when, is not known */
	if (rc > 0)
		return exec_failed(request->words[0], rc);
	if (rc < 0)
		return command_fail(CHILD_OWN_ERROR, "fork: %s", strerror(-rc));
	/* A user's log that nobody has written to need not be there. */
	if (load_rc && load_rc != -ENOENT)
		command_fail(0, "%s: %s", log.path, strerror(-load_rc));
	complete(&runs, &end);
	print_runs(request, standing, log.began_us, &runs);
	run_log_done(&runs);
	child_mirror(end.status);
}

/* A broker that runs already may be for another driver; it does nothing for this program then. */
static void tell_other_driver(const struct settings *settings)
{
	struct keeper_status status;
	struct ask_reply reply;
	json_t *json;

	if (!settings->driver || keeper_status_ask_within(settings, SPAWN_LIMIT_US, &reply, &json))
		return;
	keeper_status_read(json, &status);
	json_decref(json);
	if (keeper_status_is_for_other(&status, settings->driver))
		command_fail(0,
			"the broker at %s keeps %s warm, not HEARTH_DRIVER=%s: nothing is warm "
			"here; `hearth stop`, then run it again",
			reply.address.path, keeper_status_driver(&status), settings->driver);
}

/* A program that comes to MPS by itself is left to it, and what it would wait for is said. */
static void warn_of_mps(const char *program)
{
	const char *folder = env_get(ENV_CUDA_MPS_PIPE_DIRECTORY);
	struct judgement judgement;

	if (!folder || !strcmp(folder, NO_MPS_FOLDER))
		return;
	judge_folder(folder, false, &judgement);
	if (judge_is_bad(&judgement))
		command_fail(0, "%s: MPS: %s: %s", program, judgement.text, judgement.remedy);
}

/* The line that says why it runs without MPS comes before the program's own; one from inside it
 * only where HEARTH_LOG_LEVEL asks, so that is set where nobody has. */
static int attach(const struct request *request)
{
	char why[ATTACH_WHY];
	int rc;

	if (!request->is_mps)
		warn_of_mps(request->words[0]);
	if (!request->is_mps)
		return request->mps.memory || request->mps.threads || request->mps.priority
			       ? command_fail(CHILD_OWN_ERROR,
					 "--mem, --threads and --priority are MPS's: say --mps too")
			       : 0;
	rc = attach_prepare(&request->mps, why);
	if (rc == -EINVAL)
		return command_fail(CHILD_OWN_ERROR, "%s", why);
	if (rc < 0)
		return command_fail(CHILD_OWN_ERROR, "--mps: %s", strerror(-rc));
	if (rc == ATTACH_PLAIN)
		command_fail(0, "--mps: %s runs without MPS: %s", request->words[0], why);
	else
		setenv("HEARTH_LOG_LEVEL", "error", 0);
	return 0;
}

static int run(int argc, char **argv)
{
	struct standing standing = {0};
	struct settings *settings = &standing.settings;
	struct request request;
	int rc = parse(argc, argv, &request);

	if (rc != OPTIONS_TAKEN)
		return rc;
	if (request.is_spare && (request.is_report || request.is_eager))
		return command_fail(CHILD_OWN_ERROR, "--spare: not with --%s",
			request.is_report ? "report" : "eager");
	if (request.keep && !request.is_spare)
		return command_fail(CHILD_OWN_ERROR, "--keep: only with --spare");
	if (imports_split(request.keep, request.imports))
		return command_fail(
			CHILD_OWN_ERROR, "--keep: '%s' is no list of modules", request.keep);
	rc = set_environment(&request);
	if (rc)
		return rc;
	settings_read(settings);
	/* Without a broker the program is as well off as without Hearth: no reason to fail. */
	if (settings->is_on) {
		rc = broker_spawn(settings, NULL, standing.why);
		standing.has_no_broker = rc && rc != SPAWN_RUNNING;
		if (rc == SPAWN_RUNNING)
			tell_other_driver(settings);
	}
	rc = attach(&request);
	if (rc)
		return rc;
	if (request.is_report)
		return run_and_report(&request, &standing);
	if (request.is_eager)
		wrap_set_eager();
	if ((request.is_spare || (settings->are_spares_kept && !request.is_eager)) &&
		settings->is_on) {
		log_set_level(settings->log_level);
		settings->are_spares_kept &= !request.keep; /* that one is enough */
		spare_adopt(request.words, settings);
		rc = request.keep ? spare_keep(request.words, request.imports) : 0;
		if (rc)
			log_info("no spare is kept: %s", strerror(-rc));
	}
	execvp(request.words[0], request.words);
	return exec_failed(request.words[0], errno);
}

const struct command command_run = {
	.name = "run",
	.arguments =
		"[--report] [--eager] [--spare [--keep MODULE,...]] [--task NAME] [--log FILE] "
		"[--mps] [--] PROGRAM [ARGUMENT...]",
	.summary = "Run a program under Hearth",
	.help = "Adds libhearth.so to LD_PRELOAD, after what is there, starts a broker if none "
		"runs,\n"
		"and becomes the program.\n"
		"\n"
		"  --report     stay, and show the first CUDA calls on stderr when it has ended\n"
		"  --json       the same as JSON\n"
		"  --eager      do cuInit and a context ahead though nothing was learned yet\n"
		"  --spare      by way of a waiting spare of its kind, if there is one (`hearth "
		"spare`)\n"
		"  --keep MODULE,...  where none waits, leave one with these imports for the next "
		"start,\n"
		"               as long as the process lives that has started this one\n"
		"  --task NAME  a name for this run in reports (HEARTH_TASK; the broker keeps 63 "
		"bytes)\n"
		"  --log FILE   append records as JSON lines (HEARTH_LOG; %p is the pid, %h the "
		"host)\n"
		"  --mps        as a client of CUDA MPS (`hearth mps start`); where that cannot "
		"be, "
		"one line\n"
		"               says why, and the program runs without\n"
		"  --mem SIZE   MPS: GPU memory that it may take: 2GiB, 512MiB\n"
		"  --threads PERCENT  MPS: the share of the GPU's threads that it may use: 50%\n"
		"  --priority LEVEL   MPS: low or normal\n"
		"\n"
		"The exit status is the program's; 125 where Hearth itself failed, 126 where the\n"
		"program could not be run, 127 where it was not found.\n",
	.run = run,
	.usage_status = CHILD_OWN_ERROR,
};
