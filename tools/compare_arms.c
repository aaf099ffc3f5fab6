/* The two arms of `hearth compare`. The native one runs the program with libhearth.so as an
 * observer: no broker, the keeper gone, the GPU idle for some seconds; a driver whose state is warm
 * from the run before would not be native. Must never leave the keeper released. */
#include "compare_arms.h"

#include "base/env.h"
#include "broker/spawn.h"
#include "command.h"
#include "launch/keeper_status.h"
#include "launch/others.h"
#include "launch/scratch.h"
#include "launch/wrap.h"
#include "report/load.h"
#include "report/table.h"
#include "tell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BROKER_LIMIT_MS 5000
#define KEEPER_LIMIT_MS 60000
#define POLL_MS 10
/* Measured: cuInit takes its full native time after some seconds of idle GPU. */
#define IDLE_MS 5000
/* Should we be killed, the keeper comes back by itself. */
#define RELEASE_S 3600
#define NOWHERE "/dev/null/no-broker"
#define REAL_DEVICE "/dev/nvidia-uvm"
#define TAIL_BYTES 2000

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	interrupted = number;
}

/* Sleeps, unless we are told to end. */
static bool pause_ms(unsigned ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

	while (!interrupted && nanosleep(&time, &time) && errno == EINTR)
		;
	return !interrupted;
}

static int stopped(void)
{
	return command_fail(COMMAND_FAILED, "compare: ended by signal %d", (int)interrupted);
}

static int ask(struct arms *arms, struct ask_reply *ret_reply, struct keeper_status *ret_status)
{
	json_t *json;
	int rc = keeper_status_ask(&arms->settings, ret_reply, &json);

	if (rc)
		return rc;
	keeper_status_read(json, ret_status);
	json_decref(json);
	return 0;
}

/* Waits for a broker that has just been started. */
static int wait_for_broker(struct arms *arms)
{
	struct keeper_status status;
	struct ask_reply reply;
	int rc = ask(arms, &reply, &status);

	for (unsigned ms = 0; rc == -ENOENT && ms < BROKER_LIMIT_MS; ms += POLL_MS) {
		if (!pause_ms(POLL_MS))
			return stopped();
		rc = ask(arms, &reply, &status);
	}
	if (rc)
		return tell_failure(rc, &reply);
	arms->address = reply.address;
	if (keeper_status_is_for_other(&status, arms->settings.driver))
		return command_fail(COMMAND_FAILED,
			"compare: the broker at %s keeps %s warm, not HEARTH_DRIVER=%s: `hearth "
			"stop`, then compare again",
			reply.address.path, keeper_status_driver(&status), arms->settings.driver);
	return COMMAND_OK;
}

static int wait_until_warm(struct arms *arms, struct keeper_status *ret_status)
{
	struct ask_reply reply;

	for (unsigned ms = 0; ms < KEEPER_LIMIT_MS; ms += POLL_MS) {
		int rc = ask(arms, &reply, ret_status);

		if (rc)
			return tell_failure(rc, &reply);
		if (!strcmp(ret_status->state, "warm"))
			return COMMAND_OK;
		if (strcmp(ret_status->state, "starting"))
			return tell_keeper("compare needs the keeper, which is", ret_status);
		if (!pause_ms(POLL_MS))
			return stopped();
	}
	return command_fail(COMMAND_FAILED, "compare: the keeper is not warm after %d s",
		KEEPER_LIMIT_MS / 1000);
}

/* The program's output: to a file that the user named, or thrown away but for its errors. */
static int open_output(struct arms *arms, const char *keep_output)
{
	char path[PATH_MAX];
	int rc;

	if (keep_output) {
		arms->output = open(keep_output, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (arms->output < 0)
			return command_fail(COMMAND_FAILED, "%s: %s", keep_output, strerror(errno));
		arms->errors = arms->output;
		return COMMAND_OK;
	}
	arms->output = open("/dev/null", O_RDWR | O_CLOEXEC);
	rc = scratch_make("errors", path, &arms->errors);
	if (rc)
		return command_fail(COMMAND_FAILED, "%s: %s", path, strerror(-rc));
	fcntl(arms->errors, F_SETFL, O_APPEND);
	unlink(path);
	return COMMAND_OK;
}

static int open_log(struct arms *arms)
{
	int fd, rc = scratch_make("compare", arms->log, &fd);

	if (rc)
		return command_fail(COMMAND_FAILED, "%s: %s", arms->log, strerror(-rc));
	close(fd);
	return setenv("HEARTH_LOG", arms->log, 1) ? COMMAND_FAILED : COMMAND_OK;
}

static void watch_signals(void)
{
	static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
	struct sigaction action = {.sa_handler = on_signal}, before;

	for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
		sigaction(ending[i], NULL, &before);
		if (before.sa_handler != SIG_IGN)
			sigaction(ending[i], &action, NULL);
	}
}

int arms_open(
	const char *keep_output, char **words, struct comparison *comparison, struct arms *ret_arms)
{
	struct arms *arms = ret_arms;
	struct keeper_status status;
	struct wrap_error error;
	char why[SPAWN_WHY_SIZE];
	int rc;

	*arms = (struct arms){.words = words, .output = -1, .errors = -1};
	arms->comparison = comparison;
	settings_read(&arms->settings);
	/* They point into the environment we were started with, which setenv leaves as it is. */
	arms->users_speculate = env_get(ENV_HEARTH_SPECULATE);
	arms->users_ctx = env_get(ENV_HEARTH_CTX);
	if (wrap_find_library(sizeof(arms->library), arms->library, &error))
		return command_fail(COMMAND_FAILED, "%s", error.text);
	rc = broker_spawn(&arms->settings, NULL, why);
	if (rc && rc != SPAWN_RUNNING)
		return command_fail(COMMAND_FAILED, "no broker could be started: %s", why);
	watch_signals();
	rc = wait_for_broker(arms);
	if (!rc)
		rc = wait_until_warm(arms, &status);
	if (rc)
		return rc;
	arms->settings.socket = arms->address.path;
	comparison->is_simulated = status.is_simulated;
	if (!others_find_device(status.pid, arms->device))
		strcpy(arms->device, REAL_DEVICE);
	rc = open_output(arms, keep_output);
	if (!rc)
		rc = open_log(arms);
	if (!rc && (wrap_set_preload(arms->library, &error) || unsetenv("HEARTH")))
		rc = command_fail(COMMAND_FAILED, "%s", error.text);
	return rc;
}

/* Shows the end of what the program wrote to stderr since `from`. */
static void show_tail(int fd, off_t from)
{
	off_t size = lseek(fd, 0, SEEK_END),
	      start = size - from > TAIL_BYTES ? size - TAIL_BYTES : from;
	char text[TAIL_BYTES + 1], *line, *rest = text;
	ssize_t got = pread(fd, text, TAIL_BYTES, start);

	text[got > 0 ? got : 0] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		char *clean = *line ? table_text_clean(line) : NULL;

		if (clean)
			fprintf(stderr, "  %s\n", clean);
		free(clean);
	}
}

static int check_end(
	const struct arms *arms, const struct child_end *end, const char *arm, off_t errors_from)
{
	if (end->caught) {
		interrupted = end->caught;
		return stopped();
	}
	if (!end->status)
		return COMMAND_OK;
	if (WIFSIGNALED(end->status))
		command_fail(0, "%s (%s): killed by signal %d (%s)", arms->words[0], arm,
			WTERMSIG(end->status), strsignal(WTERMSIG(end->status)));
	else
		command_fail(0, "%s (%s): exit status %d", arms->words[0], arm,
			WEXITSTATUS(end->status));
	show_tail(arms->errors, errors_from);
	return COMMAND_FAILED;
}

/* A setting for the program: `native` in the native arm, else what the user has set. */
static void set_for_arm(enum env_id id, bool is_native, const char *native, const char *users)
{
	if (is_native || users)
		setenv(env_info(id)->name, is_native ? native : users, 1);
	else
		unsetenv(env_info(id)->name);
}

/* In the native arm the library finds no broker, does nothing ahead and routes nothing. */
static void set_arm(const struct arms *arms, bool is_native)
{
	set_for_arm(ENV_HEARTH_SOCKET, is_native, NOWHERE, arms->address.path);
	set_for_arm(ENV_HEARTH_SPECULATE, is_native, "off", arms->users_speculate);
	set_for_arm(ENV_HEARTH_CTX, is_native, "native", arms->users_ctx);
}

/* Runs the program once; what it logged is in ret_log, to be done with by the caller. */
static int run_once(struct arms *arms, bool is_native, const char *name, struct run_log *ret_log,
	struct child_end *ret_end)
{
	off_t errors_from = lseek(arms->errors, 0, SEEK_END);
	int empty = open("/dev/null", O_RDONLY | O_CLOEXEC), rc;
	struct child_options options = {.stdin_fd = empty,
		.stdout_fd = arms->output,
		.stderr_fd = arms->errors,
		.words = arms->words};

	set_arm(arms, is_native);
	if (truncate(arms->log, 0))
		return command_fail(COMMAND_FAILED, "%s: %s", arms->log, strerror(errno));
	rc = child_run(&options, ret_end);
	close(empty);
	if (rc)
		return command_fail(
			COMMAND_FAILED, "%s: %s", arms->words[0], strerror(rc < 0 ? -rc : rc));
	rc = check_end(arms, ret_end, name, errors_from);
	if (rc)
		return rc;
	rc = load_file(arms->log, ret_log);
	return rc ? command_fail(COMMAND_FAILED, "%s: %s", arms->log, strerror(-rc)) : COMMAND_OK;
}

static int add_run(struct arms *arms, enum compare_arm arm, const struct run_log *log,
	const struct child_end *end)
{
	if (compare_add(arms->comparison, arm, log, end->wall_us) == COMPARE_NO_CUDA)
		return command_fail(COMMAND_FAILED,
			"%s: no CUDA call was seen; `hearth doctor` may say why", arms->words[0]);
	for (size_t i = 0; arm == COMPARE_HEARTH && i < log->count; i++)
		for (size_t r = 0; r < log->runs[i].count; r++)
			if (run_record_kind(&log->runs[i].records[r]) == RUN_INIT &&
				!strcmp(log->runs[i].records[r].how, "cold"))
				compare_note(arms->comparison,
					"in some runs through Hearth cuInit was cold all the same");
	return COMMAND_OK;
}

static int order(struct arms *arms, enum wire_type type, struct ask_reply *ret_reply)
{
	struct wire_message message;

	wire_init(&message, type);
	message.size = type == WIRE_RELEASE ? RELEASE_S : 0;
	return ask_broker(&arms->settings, &message, ret_reply);
}

/* Sends the keeper away and lets the GPU cool down. */
static int make_cold(struct arms *arms)
{
	struct ask_reply reply;
	struct others others;
	int rc = order(arms, WIRE_RELEASE, &reply);

	if (rc == ASK_REFUSED)
		compare_note(arms->comparison,
			"the keeper at %s may not be released by you (%s): the native arm is warm "
			"too",
			arms->address.path, strerror(reply.code));
	else if (rc)
		return tell_failure(rc, &reply);
	else
		arms->is_released = true;
	if (!arms->comparison->is_simulated && !pause_ms(IDLE_MS))
		return stopped();
	others_scan(arms->device, &others);
	for (unsigned i = 0; i < others.count && i < OTHERS_MAX; i++)
		compare_note(arms->comparison,
			"process %d (%s) keeps this GPU warm anyway: the native arm is not cold",
			(int)others.first[i].pid, others.first[i].name);
	if (others.unreadable && !arms->comparison->is_simulated)
		compare_note(arms->comparison,
			"processes of other users could not be looked at: one of them may keep "
			"this GPU warm");
	return COMMAND_OK;
}

static int make_warm(struct arms *arms)
{
	struct keeper_status status;
	struct ask_reply reply;
	int rc;

	if (arms->is_released) {
		rc = order(arms, WIRE_RESUME, &reply);
		if (rc)
			return tell_failure(rc, &reply);
		arms->is_released = false;
	}
	return wait_until_warm(arms, &status);
}

static int run_arm(struct arms *arms, enum compare_arm arm)
{
	bool is_native = arm == COMPARE_NATIVE;
	struct run_log log = {0};
	struct child_end end;
	int rc = is_native ? make_cold(arms) : make_warm(arms);

	if (rc)
		return rc;
	rc = run_once(arms, is_native, is_native ? "native" : "with Hearth", &log, &end);
	if (!rc)
		rc = add_run(arms, arm, &log, &end);
	run_log_done(&log);
	return rc;
}

int arms_run(struct arms *arms, unsigned rounds)
{
	struct run_log log = {0};
	struct child_end end;
	int rc;

	/* What every first run pays, files and compiled kernels not yet cached, is neither arm's.
	 */
	if (!arms->is_quiet)
		fputs("hearth: a first run, not counted\n", stderr);
	rc = run_once(arms, true, "first run", &log, &end);
	run_log_done(&log);
	for (unsigned i = 0; !rc && i < rounds; i++) {
		if (!arms->is_quiet)
			fprintf(stderr, "hearth: round %u of %u\n", i + 1, rounds);
		rc = run_arm(arms, COMPARE_NATIVE);
		if (!rc)
			rc = run_arm(arms, COMPARE_HEARTH);
	}
	return rc;
}

void arms_close(struct arms *arms)
{
	struct ask_reply reply;

	if (arms->is_released)
		order(arms, WIRE_RESUME, &reply);
	if (*arms->log)
		unlink(arms->log);
	if (arms->errors != arms->output)
		close(arms->errors);
	if (arms->output >= 0)
		close(arms->output);
}
