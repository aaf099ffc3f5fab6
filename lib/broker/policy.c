/* Leaving, on hearthd's main thread. */
#include "broker/policy.h"

#include "broker/broker.h"
#include "broker/machine.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

uint64_t policy_leave_at(const struct broker *broker)
{
	/* Who asked for a release until resumed would be surprised by a new keeper. */
	if (!broker->options.idle_us || broker->clients || broker->keeper.is_lasting_release)
		return 0;
	return broker->last_client_us + broker->options.idle_us;
}

const char *policy_leave_rule(const struct broker *broker)
{
	if (!broker->options.idle_us)
		return "stays until it is stopped";
	if (broker->keeper.is_lasting_release)
		return "stays until `hearth release` is resumed";
	if (broker->clients)
		return "stays while it has clients";
	return "leaves when no client comes";
}

void policy_tick(struct broker *broker, uint64_t now_us)
{
	uint64_t leave_us = policy_leave_at(broker);

	if (leave_us && now_us >= leave_us)
		broker_leave(broker, "no client has come for so long");
}

void policy_check(struct broker *broker)
{
	if (!instance_is_ours(&broker->instance))
		broker_leave(broker, "its socket is gone");
	else if (broker->keeper.had_devices && !broker->options.is_system &&
		 machine_gpu_count(MACHINE_GPU_FOLDER) == 0)
		broker_leave(broker, "the last GPU is gone");
}

static void on_job_end(struct source *source, uint32_t events)
{
	struct broker *broker = (struct broker *)((char *)source - offsetof(struct broker, job));

	broker_leave(broker, "its job has ended");
}

int policy_watch_job(struct broker *broker)
{
	int pidfd = (int)syscall(SYS_pidfd_open, broker->options.job, 0);
	int rc;

	if (pidfd < 0)
		return -errno;
	broker->job = (struct source){.fd = pidfd, .on_ready = on_job_end};
	rc = loop_add(&broker->loop, &broker->job, EPOLLIN);
	if (rc) {
		close(pidfd);
		broker->job.fd = -1;
	}
	return rc;
}
