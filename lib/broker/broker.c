/* hearthd's assembly and its loop, on its main thread. */
#include "broker/broker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/state_dir.h"
#include "broker/client.h"
#include "broker/peer.h"
#include "broker/policy.h"
#include "driver/verdict.h"
#include "region/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHER_DESCRIPTORS 64 /* the loop's, the keeper's, the history's, copies of drivers */
#define CHECK_US 2000000     /* between looks at what nothing reports: driver, socket, GPUs */
#define CHORE_US 20000       /* the longest that a client's end may go unseen (and a turn) */

uint64_t broker_sooner(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

void broker_leave(struct broker *broker, const char *why)
{
	if (broker->is_leaving)
		return;
	log_info("leaving: %s", why);
	broker->is_leaving = true;
	/* At once: a broker that is started now must not take us for one that serves. */
	instance_hide(&broker->instance);
}

static struct broker *of_source(struct source *source, size_t offset)
{
	return (struct broker *)((char *)source - offset);
}

static void on_connection(struct source *source, uint32_t events)
{
	peer_accept(of_source(source, offsetof(struct broker, listener)));
}

static void on_signal(struct source *source, uint32_t events)
{
	struct broker *broker = of_source(source, offsetof(struct broker, signals));
	struct signalfd_siginfo info;

	while (read(source->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD) {
			keeper_reap(&broker->keeper);
			prover_reap(&broker->prover);
			continue;
		}
		broker_leave(broker, strsignal((int)info.ssi_signo));
	}
}

static int watch_signals(struct broker *broker)
{
	sigset_t set;
	int fd, rc;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	broker->signals = (struct source){.fd = fd, .on_ready = on_signal};
	rc = loop_add(&broker->loop, &broker->signals, EPOLLIN);
	if (rc) {
		close(fd);
		broker->signals.fd = -1;
	}
	return rc;
}

static int make_region(struct broker *broker)
{
	void *memory = NULL;
	int fd = -1, rc = segment_create("hearth-region", sizeof(*broker->region), &fd);

	if (rc)
		return rc;
	rc = segment_map(fd, sizeof(*broker->region), true, &memory);
	if (!rc) {
		broker->region = memory;
		broker->region->version = HEARTH_REGION_VERSION;
		broker->region->size = sizeof(*broker->region);
		broker->region->broker_pid = (uint32_t)getpid();
		broker->region->started_us = clock_monotonic_us();
		broker->region->magic = HEARTH_REGION_MAGIC;
		rc = segment_seal(fd, true);
	}
	if (!rc)
		rc = segment_read_only(fd, &broker->region_fd);
	close(fd);
	return rc;
}

static int open_history(struct broker *broker)
{
	int rc = 0;

	if (!broker->options.is_system) {
		rc = state_dir_path(
			&broker->settings, broker->state_dir, sizeof(broker->state_dir));
	} else {
		snprintf(broker->state_dir, sizeof(broker->state_dir), "%s",
			broker->settings.state_dir ? broker->settings.state_dir
						   : VERDICT_SYSTEM_DIR);
		if (mkdir(broker->state_dir, 0755) < 0 && errno != EEXIST)
			rc = -errno;
		else if (chmod(broker->state_dir, 0755) < 0)
			rc = -errno;
	}
	if (!rc)
		rc = history_open(broker->state_dir, broker->options.is_system, &broker->history);
	/* Programs are served without it, too. */
	if (rc)
		log_error("no history is kept: %s: %s", broker->state_dir, strerror(-rc));
	return 0;
}

static void open_prover(struct broker *broker)
{
	const struct prover_options options = {
		.is_wanted = broker->options.has_keeper && broker->state_dir[0],
		.is_for_all = broker->options.is_system,
		.folder = broker->state_dir,
		.idle_us = broker->options.prove_after_us,
		.keeps_all = broker->options.keeps_power_managed,
	};

	prover_open(&broker->prover, &options);
}

/* The limits of whoever started the broker were meant for a program of theirs; and each client
 * takes a descriptor. What cannot be lifted is an error of the write, not our end. */
static void lift_limits(void)
{
	static const int kinds[] = {
		RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA};
	struct rlimit limit;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (getrlimit(kinds[i], &limit))
			continue;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(kinds[i], &limit);
	}
	signal(SIGXFSZ, SIG_IGN);
}

/* A table of descriptors that grows beside a second thread waits until no processor looks at the
 * old one: 5 to 20 ms, in which nobody would be served. So it has its size before there is one. */
static void widen_descriptor_table(const struct broker *broker)
{
	const int clients = broker->options.is_system ? CLIENT_MAX : CLIENT_MAX_PER_USER;
	const rlim_t most = 2 * (rlim_t)clients + PEER_MAX + PAGE_POOL_MAX + OTHER_DESCRIPTORS;
	struct rlimit limit;
	int last;

	if (getrlimit(RLIMIT_NOFILE, &limit) || !limit.rlim_cur)
		return;
	last = fcntl(broker->loop.epoll, F_DUPFD_CLOEXEC,
		(int)(limit.rlim_cur < most ? limit.rlim_cur : most) - 1);
	if (last >= 0)
		close(last);
}

static int find_address(const struct broker *broker, struct address *ret_address)
{
	if (broker->options.is_system && !broker->settings.socket) {
		*ret_address = (struct address){.path = ADDRESS_SYSTEM};
		return 0;
	}
	return address_own(&broker->settings, ret_address);
}

static int listen_at(struct broker *broker)
{
	struct address address;
	int listener = -1, rc = find_address(broker, &address);

	if (!rc)
		rc = instance_take(
			&address, broker->options.is_system, &broker->instance, &listener);
	if (rc)
		return rc;
	broker->listener = (struct source){.fd = listener, .on_ready = on_connection};
	return loop_add(&broker->loop, &broker->listener, EPOLLIN);
}

static int assemble(struct broker *broker)
{
	const struct keeper_options keeper_options = {
		.retain = broker->options.retain,
		.is_wanted = broker->options.has_keeper,
		.keeps_power_managed = broker->options.keeps_power_managed,
	};
	int rc;

	lift_limits();
	rc = loop_open(&broker->loop);
	if (!rc)
		widen_descriptor_table(broker);
	if (!rc && broker->options.job)
		rc = policy_watch_job(broker);
	if (!rc)
		rc = make_region(broker);
	if (!rc)
		rc = watch_signals(broker);
	if (!rc)
		rc = driver_files_open(&broker->driver_files, &broker->loop);
	if (!rc)
		rc = listen_at(broker);
	if (rc)
		return rc;
	open_history(broker);
	open_prover(broker);
	broker->last_client_us = clock_monotonic_us();
	keeper_open(&broker->keeper, &keeper_options, &broker->loop, broker->region);
	return 0;
}

int broker_open(const struct broker_options *options, const struct settings *settings,
	struct broker **ret_broker)
{
	struct broker *broker = calloc(1, sizeof(*broker));
	int rc = -ENOMEM;

	if (broker) {
		broker->options = *options;
		broker->settings = *settings;
		broker->instance.lock = -1;
		broker->loop.epoll = broker->region_fd = -1;
		broker->listener.fd = broker->signals.fd = broker->job.fd = -1;
		broker->slots = calloc(CLIENT_MAX, sizeof(*broker->slots));
		rc = broker->slots ? assemble(broker) : -ENOMEM;
	}
	if (rc) {
		broker_close(broker);
		return rc;
	}
	*ret_broker = broker;
	return 0;
}

static uint64_t quiet_since_us(const struct broker *broker)
{
	return broker->clients ? 0 : broker->last_client_us;
}

static int timeout_ms(const struct broker *broker, uint64_t now_us)
{
	uint64_t next_us = broker->next_check_us;

	next_us = broker_sooner(next_us, keeper_deadline(&broker->keeper));
	next_us = broker_sooner(next_us, broker->prover.due_us);
	next_us = broker_sooner(next_us, peer_deadline(broker));
	next_us = broker_sooner(next_us, policy_leave_at(broker));
	return next_us <= now_us ? 0 : (int)((next_us - now_us) / 1000 + 1);
}

static bool has_chores(const struct broker *broker, uint64_t now_us)
{
	return broker->unsettled || broker->parted.count || page_pool_wants(&broker->pages, now_us);
}

/* What no program waits for. Done when none does, but not put off without end. */
static void do_chores(struct broker *broker, bool is_idle)
{
	uint64_t since_us = client_unsettled_since(broker), now_us = clock_monotonic_us();

	if (!is_idle && !(since_us && now_us - since_us > CHORE_US))
		return;
	client_settle(broker);
	parted_close_some(&broker->parted);
	if (is_idle && !broker->unsettled)
		page_pool_fill(&broker->pages, now_us);
}

int broker_run(struct broker *broker)
{
	int rc = 0;

	while (rc >= 0 && !broker->is_leaving) {
		uint64_t now_us = clock_monotonic_us();

		if (now_us >= broker->next_check_us) {
			broker->next_check_us = now_us + CHECK_US;
			keeper_check_driver(&broker->keeper);
			policy_check(broker);
		}
		keeper_tick(&broker->keeper, now_us);
		prover_tick(&broker->prover, &broker->keeper, quiet_since_us(broker), now_us);
		peer_tick(broker, now_us);
		policy_tick(broker, now_us);
		if (broker->is_leaving)
			break;
		rc = loop_turn(
			&broker->loop, has_chores(broker, now_us) ? 0 : timeout_ms(broker, now_us));
		do_chores(broker, rc == LOOP_IDLE);
	}
	return rc < 0 ? rc : 0;
}

struct broker *broker_close(struct broker *broker)
{
	if (!broker)
		return NULL;
	if (broker->instance.lock >= 0)
		instance_hide(&broker->instance);
	if (broker->region)
		client_remove_all(broker);
	peer_remove_all(broker);
	prover_close(&broker->prover);
	if (broker->keeper.loop)
		keeper_close(&broker->keeper);
	broker->history = history_close(broker->history);
	driver_files_close(&broker->driver_files, &broker->loop);
	if (broker->listener.fd >= 0)
		loop_remove(&broker->loop, &broker->listener);
	if (broker->signals.fd >= 0)
		loop_remove(&broker->loop, &broker->signals);
	if (broker->job.fd >= 0)
		loop_remove(&broker->loop, &broker->job);
	loop_close(&broker->loop);
	instance_release(&broker->instance);
	if (broker->region_fd >= 0)
		close(broker->region_fd);
	segment_unmap(broker->region, sizeof(*broker->region));
	free(broker->slots);
	free(broker);
	return NULL;
}
