/* What a context holds beside memory, as seen on an H200: 16 descriptors of its GPU's device file,
 * two eventfds, a pipe, and a thread that waits on one of them. Runs on the threads that make and
 * destroy contexts, with the device's context_lock. */
#include "sim/sim.h"

#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define DEVICE_DESCRIPTORS 16

struct sim_attachment {
	int devices[DEVICE_DESCRIPTORS], events[2], pipe[2];
	pthread_t thread;
	sem_t is_ready; /* the thread has opened what it opens */
	bool has_thread;
};

static void *wait_for_end(void *argument)
{
	struct sim_attachment *attachment = argument;
	struct pollfd event = {.fd = attachment->events[0], .events = POLLIN};

	attachment->events[1] = sim_init_event();
	sem_post(&attachment->is_ready);
	while (poll(&event, 1, -1) <= 0)
		;
	return NULL;
}

static void close_all(const int *fds, int count)
{
	for (int i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

void sim_detach(struct sim_context *context)
{
	struct sim_attachment *attachment = context->attachment;

	context->attachment = NULL;
	if (!attachment)
		return;
	if (attachment->has_thread && !eventfd_write(attachment->events[0], 1))
		pthread_join(attachment->thread, NULL);
	close_all(attachment->devices, DEVICE_DESCRIPTORS);
	close_all(attachment->events, 2);
	close_all(attachment->pipe, 2);
	free(attachment);
}

int sim_attach(struct sim_context *context)
{
	struct sim_attachment *attachment = calloc(1, sizeof(*attachment));
	char name[32];
	bool is_whole;

	if (!attachment)
		return SIM_OUT_OF_MEMORY;
	context->attachment = attachment;
	snprintf(name, sizeof(name), "nvidia%d", sim.physical[context->device]);
	attachment->events[0] = sim_init_event();
	attachment->events[1] = -1;
	is_whole = attachment->events[0] >= 0 && !sem_init(&attachment->is_ready, 0, 0);
	if (sim_init_pipe(attachment->pipe)) {
		attachment->pipe[0] = attachment->pipe[1] = -1;
		is_whole = false;
	}
	for (int i = 0; i < DEVICE_DESCRIPTORS; i++) {
		attachment->devices[i] = sim_machine_open_device(name);
		is_whole &= attachment->devices[i] >= 0;
	}
	attachment->has_thread =
		is_whole && !sim_init_thread(&attachment->thread, wait_for_end, attachment);
	while (attachment->has_thread && sem_wait(&attachment->is_ready))
		;
	if (attachment->has_thread)
		return SIM_SUCCESS;
	sim_detach(context);
	return SIM_OPERATING_SYSTEM;
}
