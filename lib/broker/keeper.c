/* The keeper's supervisor, on hearthd's main thread: never waits for the child but in keeper_close.
 */
#include "broker/keeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/socket.h"
#include "broker/machine.h"
#include "broker/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECOND_US 1000000u
#define FIRST_BACK_OFF_US (1 * SECOND_US)
#define LAST_BACK_OFF_US (300 * SECOND_US)
#define START_LIMIT_US (60 * SECOND_US) /* 2.7 s are known from eight GPUs; this is a hang */
#define SETTLE_S 5                      /* an installer replaces more than one file */

struct channel {
	struct source source;
	struct keeper *keeper;
};

const char *keeper_state_name(enum hearth_keeper_state state)
{
	static const char *const names[] = {
		[HEARTH_KEEPER_OFF] = "off",
		[HEARTH_KEEPER_STARTING] = "starting",
		[HEARTH_KEEPER_WARM] = "warm",
		[HEARTH_KEEPER_RELEASED] = "released",
		[HEARTH_KEEPER_FAILED] = "failed",
	};

	return names[state];
}

static void enter(struct keeper *keeper, enum hearth_keeper_state state, const char *reason)
{
	struct hearth_region *region = keeper->region;

	keeper->state = state;
	keeper->reason = reason;
	__atomic_store_n(&region->keeper_pid, (uint32_t)keeper->pid, __ATOMIC_RELAXED);
	__atomic_store_n(&region->keeper_since_us, clock_monotonic_us(), __ATOMIC_RELAXED);
	__atomic_store_n(&region->keeper_state, (uint32_t)state, __ATOMIC_RELEASE);
	log_info("keeper is %s%s%s", keeper_state_name(state), reason ? ": " : "",
		reason ? reason : "");
}

static void fail(struct keeper *keeper, int rc, const char *reason)
{
	keeper->region->keeper_rc = rc;
	keeper->next_us = clock_monotonic_us() + keeper->back_off_us;
	keeper->back_off_us *= 2;
	if (keeper->back_off_us > LAST_BACK_OFF_US)
		keeper->back_off_us = LAST_BACK_OFF_US;
	enter(keeper, HEARTH_KEEPER_FAILED, reason);
}

static void free_channel(struct source *source)
{
	free(source);
}

/* The child exits by itself when its end closes; SIGKILL is for one that the driver holds. */
static void end_child(struct keeper *keeper)
{
	if (keeper->channel)
		loop_remove(keeper->loop, keeper->channel);
	keeper->channel = NULL;
	if (keeper->pid)
		kill(keeper->pid, SIGKILL);
}

static void note_driver(struct keeper *keeper, const char *path)
{
	snprintf(keeper->driver_path, sizeof(keeper->driver_path), "%s", path);
	if (stat(path, &keeper->driver_file) < 0)
		keeper->driver_path[0] = 0;
	machine_module_version(keeper->driver_version, sizeof(keeper->driver_version));
}

static void publish(struct keeper *keeper, const struct keeper_report *report)
{
	struct hearth_region *region = keeper->region;
	uint32_t count = report->device_count;

	if (count > HEARTH_MAX_DEVICES)
		count = HEARTH_MAX_DEVICES;
	memcpy(region->devices, report->devices, sizeof(region->devices));
	region->driver_version = report->driver_version;
	region->keeper_rc = report->rc;
	if (!report->rc && report->was_cold)
		region->keeper_init_us = report->init_us;
	__atomic_store_n(&region->device_count, count, __ATOMIC_RELEASE);
	keeper->had_devices |= count > 0;
}

static void on_report(struct keeper *keeper, const struct keeper_report *report)
{
	if (report->rc == KEEPER_NO_DRIVER) {
		end_child(keeper);
		keeper->next_us = clock_monotonic_us() + LAST_BACK_OFF_US;
		enter(keeper, HEARTH_KEEPER_OFF, "there is no driver");
		return;
	}
	note_driver(keeper, report->driver_path);
	publish(keeper, report);
	if (report->rc) {
		end_child(keeper);
		fail(keeper, report->rc, "the driver reports an error");
		return;
	}
	keeper->back_off_us = FIRST_BACK_OFF_US;
	keeper->next_us = 0;
	if (keeper->state != HEARTH_KEEPER_WARM)
		enter(keeper, HEARTH_KEEPER_WARM, NULL);
}

static void on_channel(struct source *source, uint32_t events)
{
	struct keeper *keeper = ((struct channel *)source)->keeper;
	struct keeper_report report;
	size_t fd_count;
	int rc = socket_receive(source->fd, &report, sizeof(report), NULL, 0, &fd_count);

	if (rc == -EAGAIN)
		return;
	report.driver_path[rc ? 0 : sizeof(report.driver_path) - 1] = 0;
	if (!rc && report.magic == KEEPER_REPORT_MAGIC) {
		on_report(keeper, &report);
		return;
	}
	end_child(keeper);
	fail(keeper, 0, "it ended unexpectedly");
}

static int start_child(struct keeper *keeper, const char *visible_devices)
{
	const char *retain = keeper->options.retain == HEARTH_RETAIN_CONTEXT ? "context" : "init";
	struct channel *channel = calloc(1, sizeof(*channel));
	int pair[2], rc;

	if (!channel)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		free(channel);
		return -errno;
	}
	rc = process_start_keeper(retain, visible_devices, pair[1], &keeper->pid);
	close(pair[1]);
	channel->keeper = keeper;
	channel->source =
		(struct source){.fd = pair[0], .on_ready = on_channel, .on_gone = free_channel};
	if (!rc)
		rc = loop_add(keeper->loop, &channel->source, EPOLLIN);
	if (rc) {
		close(pair[0]);
		free(channel);
		return rc;
	}
	keeper->channel = &channel->source;
	return 0;
}

/* Only when no former child is left. */
static void start(struct keeper *keeper)
{
	char visible[MACHINE_VISIBLE_MAX];
	int rc;

	keeper->next_us = 0;
	rc = machine_visible_devices(MACHINE_PCI_FOLDER, MACHINE_GPU_FOLDER,
		keeper->options.keeps_power_managed, visible, sizeof(visible));
	if (rc == MACHINE_NONE_LEFT) {
		keeper->next_us = clock_monotonic_us() + LAST_BACK_OFF_US;
		enter(keeper, HEARTH_KEEPER_OFF, "the GPU's runtime power control is `auto`");
		return;
	}
	rc = start_child(keeper, visible[0] ? visible : NULL);
	if (rc) {
		log_error("cannot start the keeper: %s", strerror(-rc));
		fail(keeper, 0, "it could not be started");
		return;
	}
	keeper->deadline_us = clock_monotonic_us() + START_LIMIT_US;
	enter(keeper, HEARTH_KEEPER_STARTING, NULL);
}

void keeper_open(struct keeper *keeper, const struct keeper_options *options, struct loop *loop,
	struct hearth_region *region)
{
	*keeper = (struct keeper){
		.options = *options,
		.loop = loop,
		.region = region,
		.back_off_us = FIRST_BACK_OFF_US,
	};
	region->keeper_retain = options->retain;
	if (options->is_wanted)
		start(keeper);
	else
		enter(keeper, HEARTH_KEEPER_OFF, "none was asked for");
}

void keeper_close(struct keeper *keeper)
{
	end_child(keeper);
	if (keeper->pid)
		while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
			;
	keeper->pid = 0;
}

void keeper_release(struct keeper *keeper, uint64_t seconds, const char *reason)
{
	if (!keeper->options.is_wanted)
		return;
	end_child(keeper);
	keeper->is_lasting_release = !seconds;
	keeper->next_us = seconds ? clock_monotonic_us() + seconds * SECOND_US : 0;
	enter(keeper, HEARTH_KEEPER_RELEASED, reason);
}

void keeper_resume(struct keeper *keeper)
{
	if (!keeper->options.is_wanted || keeper->state == HEARTH_KEEPER_WARM ||
		keeper->state == HEARTH_KEEPER_STARTING)
		return;
	keeper->is_lasting_release = false;
	keeper->back_off_us = FIRST_BACK_OFF_US;
	keeper->next_us = clock_monotonic_us();
	keeper_tick(keeper, keeper->next_us);
}

void keeper_reap(struct keeper *keeper)
{
	int status;

	if (!keeper->pid || waitpid(keeper->pid, &status, WNOHANG) != keeper->pid)
		return;
	keeper->pid = 0;
	__atomic_store_n(&keeper->region->keeper_pid, 0, __ATOMIC_RELAXED);
	/* What it still had to say comes first: on_channel meets the end of the connection. */
	keeper_tick(keeper, clock_monotonic_us());
}

void keeper_tick(struct keeper *keeper, uint64_t now_us)
{
	if (keeper->state == HEARTH_KEEPER_STARTING && now_us >= keeper->deadline_us) {
		end_child(keeper);
		fail(keeper, 0, "it did not come up within a minute");
	}
	if (keeper->next_us && now_us >= keeper->next_us && !keeper->pid)
		start(keeper);
}

uint64_t keeper_deadline(const struct keeper *keeper)
{
	if (keeper->state == HEARTH_KEEPER_STARTING)
		return keeper->deadline_us;
	return keeper->pid ? 0 : keeper->next_us; /* SIGCHLD comes first */
}

bool keeper_is_same_file(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino &&
	       one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
	       one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

void keeper_check_driver(struct keeper *keeper)
{
	char version[sizeof(keeper->driver_version)];
	struct stat info;
	bool is_same;

	if (keeper->state != HEARTH_KEEPER_WARM || !keeper->driver_path[0])
		return;
	machine_module_version(version, sizeof(version));
	is_same = !stat(keeper->driver_path, &info) &&
		  keeper_is_same_file(&info, &keeper->driver_file) &&
		  !strcmp(version, keeper->driver_version);
	if (!is_same)
		keeper_release(keeper, SETTLE_S, "the driver is being replaced");
}
