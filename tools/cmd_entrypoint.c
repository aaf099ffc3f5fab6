/* `hearth entrypoint`: what an image starts. Starts the broker, waits for a warm keeper or says why
 * there is none, runs the program, and is the container's PID 1: reaps what is orphaned, forwards
 * signals, ends as the program ended. Must never keep the program from running because there is no
 * GPU, and never wait longer than it was told. */
#include "base/settings.h"
#include "broker/spawn.h"
#include "command.h"
#include "launch/child.h"
#include "launch/warm.h"
#include "launch/wrap.h"
#include "options.h"
#include "region/address.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_WAIT_S 10
#define MAX_WAIT_S 3600
#define MAX_SILENCE_S 2   /* a broker that has not answered by then does not come up */
#define SIGNAL_STATUS 128 /* as a shell shows it; PID 1 cannot end by a signal */
/* The broker is killed with the container: its history may lie on a volume. */
#define WRITE_LIMIT_MS 500
#define POLL_MS 10

/* A read-only image without a writable /tmp still has /dev/shm. Where the machine's broker is to be
 * seen, no place of our own is needed. */
static void give_the_socket_a_place(struct settings *settings)
{
	char folder[ADDRESS_MAX], path[ADDRESS_MAX + sizeof("/socket")];
	struct address address;

	if (settings->socket || !access(ADDRESS_SYSTEM, F_OK) || !address_own(settings, &address))
		return;
	snprintf(folder, sizeof(folder), "/dev/shm/hearth-%u", (unsigned)geteuid());
	if ((mkdir(folder, 0700) < 0 && errno != EEXIST) || address_check_folder(folder))
		return;
	snprintf(path, sizeof(path), "%s/socket", folder);
	if (!setenv("HEARTH_SOCKET", path, 1))
		settings_read(settings);
}

static bool is_ending(void)
{
	return child_held_ending();
}

static void wait_until_warm(const struct settings *settings, unsigned seconds)
{
	unsigned first = seconds < MAX_SILENCE_S ? seconds : MAX_SILENCE_S;
	char why[WARM_TEXT_SIZE];
	struct keeper_status status;
	struct ask_reply reply;
	int asked, rc;

	if (!seconds)
		return;
	rc = warm_wait(settings, first, is_ending, &status, &reply, &asked);
	if (rc == WARM_TIMEOUT && !asked)
		rc = warm_wait(settings, seconds - first, is_ending, &status, &reply, &asked);
	if (!rc || is_ending())
		return;
	warm_explain(&status, why);
	if (asked)
		command_fail(0, "no broker answers at %s: %s; going on without",
			*reply.address.path ? reply.address.path : ADDRESS_SYSTEM,
			asked > 0 ? "refused" : strerror(-asked));
	else
		command_fail(0, "%s; going on without", why);
}

/* Lets the broker that we have started write what it knows, and end. */
static void end_broker(const struct settings *settings)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
	struct wire_message message;
	struct ask_reply reply;
	bool is_written = false;

	for (unsigned ms = 0; !is_written && ms < WRITE_LIMIT_MS; ms += POLL_MS) {
		json_t *status;

		if (ms)
			nanosleep(&pause, NULL);
		if (keeper_status_ask(settings, &reply, &status))
			return;
		is_written = !json_integer_value(json_object_get(status, "runs_unwritten"));
		json_decref(status);
	}
	wire_init(&message, WIRE_STOP);
	ask_broker_within(settings, &message, WRITE_LIMIT_MS * 1000, &reply);
}

static int run(int argc, char **argv)
{
	unsigned seconds = DEFAULT_WAIT_S;
	const struct option_row rows[] = {
		{.name = "wait", .number = &seconds, .most = MAX_WAIT_S}, {0}};
	struct child_options options = {
		.stdin_fd = -1, .stdout_fd = -1, .stderr_fd = -1, .is_init = true};
	char library[PATH_MAX];
	struct settings settings;
	struct wrap_error error;
	struct child_end end;
	char why[SPAWN_WHY_SIZE];
	bool is_ours = false;
	int signal, started,
		rc = options_take(
			&command_entrypoint, rows, WORDS_PROGRAM, argc, argv, &options.words);

	if (rc != OPTIONS_TAKEN)
		return rc;
	if (wrap_find_library(sizeof(library), library, &error) ||
		wrap_set_preload(library, &error))
		return command_fail(CHILD_OWN_ERROR, "%s", error.text);
	settings_read(&settings);
	/* A container may be stopped while we wait; PID 1 would not even hear of it. */
	child_hold_signals(true);
	/* So that the broker, too, is ours to reap where we are not PID 1. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (settings.is_on) {
		give_the_socket_a_place(&settings);
		started = broker_spawn(&settings, NULL, why);
		is_ours = !started;
		if (is_ours || started == SPAWN_RUNNING)
			wait_until_warm(&settings, seconds);
		else if (seconds)
			command_fail(0, "no broker could be started: %s; going on without", why);
	}
	signal = child_held_ending();
	rc = signal ? 0 : child_run(&options, &end);
	if (is_ours)
		end_broker(&settings);
	if (signal)
		return SIGNAL_STATUS + signal;
	if (rc > 0)
		return command_fail(
			child_exec_status(rc), "%s: %s", options.words[0], strerror(rc));
	if (rc < 0)
		return command_fail(CHILD_OWN_ERROR, "fork: %s", strerror(-rc));
	return WIFSIGNALED(end.status) ? SIGNAL_STATUS + WTERMSIG(end.status)
				       : WEXITSTATUS(end.status);
}

const struct command command_entrypoint = {
	.name = "entrypoint",
	.arguments = "[--wait SECONDS] [--] PROGRAM [ARGUMENT...]",
	.usage_status = CHILD_OWN_ERROR,
	.summary = "Run an image's program under Hearth, as its PID 1",
	.help = "For the ENTRYPOINT of an image: starts a broker if none runs, waits until its "
		"keeper is\n"
		"warm or says why it is not, and runs the program. Reaps what is orphaned, and "
		"forwards\n"
		"every signal to the program.\n"
		"\n"
		"  --wait SECONDS  how long to wait at most (10); 0 waits for nothing\n"
		"\n"
		"The exit status is the program's, or 128 and the number of the signal that ended "
		"it; 125\n"
		"where Hearth itself failed, 126 where the program could not be run, 127 where it "
		"was not\n"
		"found.\n",
	.run = run,
};
