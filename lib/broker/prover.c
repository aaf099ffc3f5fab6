/* The prover's supervisor, on hearthd's main thread: never waits for the child but in prover_close,
 * never touches the state folder. */
#include "broker/prover.h"

#include "base/clock.h"
#include "base/log.h"
#include "broker/keeper.h"
#include "broker/machine.h"
#include "broker/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define SECOND_US 1000000u
#define LIMIT_US (100 * SECOND_US) /* four scenarios of at most 20 s each */
#define AGAIN_US (300 * SECOND_US) /* where the GPU was full or away */
#define MODE_DEFAULT 0             /* CU_COMPUTEMODE_DEFAULT */
#define LOOK_US (2 * SECOND_US)    /* between looks that somebody's asking causes */

static bool has_outcome(const struct prover *prover)
{
	return prover->status == PROVE_PASSED || prover->status == PROVE_FAILED;
}

const char *prover_state_name(const struct prover *prover)
{
	if (!prover->options.is_wanted)
		return "off";
	if (prover->step == PROVER_PROVING)
		return "proving";
	if (!has_outcome(prover))
		return "not proven";
	return prover->status == PROVE_PASSED ? "passed" : "failed";
}

static void start(struct prover *prover, const struct keeper *keeper, enum prover_step step)
{
	char visible[MACHINE_VISIBLE_MAX] = "";
	struct prove_request request = {
		.what = step == PROVER_PROVING ? PROVE_RUN : PROVE_LOOK,
		.driver = keeper->driver_path,
		.folder = prover->options.folder,
		.readers = prover->options.is_for_all ? PROVE_FOR_ALL : PROVE_FOR_OWNER,
		.out = -1,
	};
	int rc;

	machine_visible_devices(MACHINE_PCI_FOLDER, MACHINE_GPU_FOLDER, prover->options.keeps_all,
		visible, sizeof(visible));
	request.visible_devices = visible[0] ? visible : NULL;
	prover->is_asked_to_look = false;
	rc = process_start_prover(&request, &prover->pid);
	if (rc) {
		log_error("cannot start the proof: %s", strerror(-rc));
		prover->pid = 0;
		prover->step = PROVER_DONE;
		return;
	}
	/* A child's children that outlive it come to us, and so are known to be gone. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prover->is_cancelled = false;
	prover->looked_us = clock_monotonic_us();
	prover->deadline_us = prover->looked_us + LIMIT_US;
	prover->step = step;
	if (step == PROVER_PROVING)
		log_info("proving that speculation can be undone on %s", keeper->driver_path);
}

static void finish(struct prover *prover)
{
	bool was_proof = prover->step == PROVER_PROVING;
	enum prove_status status = WIFEXITED(prover->exit_status)
					   ? (enum prove_status)WEXITSTATUS(prover->exit_status)
					   : PROVE_ERROR;

	if (prover->is_cancelled) {
		prover->step = PROVER_IDLE;
		return;
	}
	prover->status = status;
	if (was_proof && status == PROVE_UNKNOWN)
		prover->next_us = clock_monotonic_us() + AGAIN_US;
	else if (was_proof)
		prover->is_spent = true;
	prover->step = status == PROVE_UNKNOWN && !prover->is_spent ? PROVER_WAITING : PROVER_DONE;
	if (was_proof)
		log_info("the proof %s", status == PROVE_PASSED    ? "passed"
					 : status == PROVE_FAILED  ? "failed"
					 : status == PROVE_UNKNOWN ? "could not be run now"
								   : "came to no end");
}

/* Also what the child had started and could not wait for: they are the broker's, a subreaper's. */
void prover_reap(struct prover *prover)
{
	int status;
	pid_t pid;

	if (!prover->pid)
		return;
	while ((pid = waitpid(-prover->pid, &status, WNOHANG)) > 0) {
		if (pid != prover->pid)
			continue;
		prover->exit_status = status;
		if (!WIFEXITED(status))
			kill(-prover->pid, SIGKILL); /* what it had no time to wait for */
	}
	if (pid < 0 && errno == ECHILD) {
		prctl(PR_SET_CHILD_SUBREAPER, 0);
		prover->pid = 0;
		finish(prover);
	}
}

void prover_cancel(struct prover *prover)
{
	if (!prover->pid)
		return;
	prover->is_cancelled = true;
	kill(-prover->pid, SIGKILL);
}

void prover_open(struct prover *prover, const struct prover_options *options)
{
	*prover = (struct prover){.options = *options, .status = PROVE_UNKNOWN};
}

void prover_close(struct prover *prover)
{
	prover_cancel(prover);
	while (prover->pid && (waitpid(-prover->pid, NULL, 0) > 0 || errno == EINTR))
		;
	prover->pid = 0;
}

/* When a proof that waits may start; 0 = not known yet. */
static uint64_t start_us(const struct prover *prover, uint64_t quiet_since_us)
{
	uint64_t at_us = quiet_since_us + prover->options.idle_us;

	if (prover->step != PROVER_WAITING || !quiet_since_us || !prover->options.idle_us)
		return 0;
	return at_us > prover->next_us ? at_us : prover->next_us;
}

void prover_look_again(struct prover *prover)
{
	bool is_still = prover->step == PROVER_WAITING || prover->step == PROVER_DONE;

	if (is_still && clock_monotonic_us() >= prover->looked_us + LOOK_US)
		prover->is_asked_to_look = true;
}

static bool may_start(const struct prover *prover, uint64_t quiet_since_us, uint64_t now_us)
{
	uint64_t at_us = start_us(prover, quiet_since_us);

	return at_us && now_us >= at_us;
}

/* The device that is proved on is the first one. A context of ours on one in an exclusive mode
 * would keep others from theirs. */
static bool is_shared(const struct keeper *keeper)
{
	const struct hearth_region *region = keeper->region;

	return region->device_count && region->devices[0].compute_mode == MODE_DEFAULT;
}

/* What runs must end with the keeper, and in time. */
static void watch(struct prover *prover, bool is_warm, uint64_t now_us)
{
	/* Nothing of ours has a device open once the keeper has let go. */
	if (!is_warm)
		prover_cancel(prover);
	if (now_us < prover->deadline_us) {
		prover->due_us = prover->deadline_us;
		return;
	}
	kill(-prover->pid, SIGKILL);
	prover->due_us = 0; /* SIGCHLD comes, when the driver lets it go */
}

static void begin_anew(struct prover *prover, const struct stat *driver)
{
	prover->driver = *driver;
	prover->status = PROVE_UNKNOWN;
	prover->step = PROVER_IDLE;
	prover->is_spent = false;
	prover->next_us = 0;
}

void prover_tick(struct prover *prover, const struct keeper *keeper, uint64_t quiet_since_us,
	uint64_t now_us)
{
	bool is_warm = keeper->state == HEARTH_KEEPER_WARM && keeper->driver_path[0];

	prover->due_us = 0;
	if (!prover->options.is_wanted)
		return;
	if (!prover->pid && is_warm) {
		if (!keeper_is_same_file(&prover->driver, &keeper->driver_file))
			begin_anew(prover, &keeper->driver_file);
		if (prover->step == PROVER_IDLE || prover->is_asked_to_look)
			start(prover, keeper, PROVER_LOOKING);
		else if (!may_start(prover, quiet_since_us, now_us))
			prover->due_us = start_us(prover, quiet_since_us);
		else if (is_shared(keeper))
			start(prover, keeper, PROVER_PROVING);
		else
			prover->due_us = prover->next_us = now_us + AGAIN_US;
	}
	if (prover->pid)
		watch(prover, is_warm, now_us);
}
