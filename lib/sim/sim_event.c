/* Events. Runs on the program's threads, with sim.lock held but where it waits. */
#include "sim/sim.h"

#include <stdlib.h>

#define FLAG_NO_TIMING 2 /* CU_EVENT_DISABLE_TIMING */
#define KNOWN_FLAGS 7

static void free_event(struct sim_object *object)
{
	free(object);
}

int sim_event_create(const word *arg)
{
	struct sim_context *context;
	struct sim_event *event;
	int rc = sim_context_current(&context);

	if (rc)
		return rc;
	if (!arg[0] || (unsigned int)arg[1] & ~(unsigned int)KNOWN_FLAGS)
		return SIM_INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event)
		return SIM_OUT_OF_MEMORY;
	event->flags = (unsigned int)arg[1];
	sim_object_add(&event->object, SIM_EVENT, context, free_event);
	*(struct sim_event **)arg[0] = event;
	return SIM_SUCCESS;
}

int sim_event_destroy(const word *arg)
{
	struct sim_event *event = sim_object_find(arg[0], SIM_EVENT);

	if (!event)
		return SIM_INVALID_HANDLE;
	sim_object_remove(&event->object);
	return SIM_SUCCESS;
}

/* (event, stream), also with flags behind */
int sim_event_record(const word *arg)
{
	struct sim_event *event = sim_object_find(arg[0], SIM_EVENT);
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = sim_stream_find(arg[1], &context, &stream);
	uint64_t busy_us, now_us = sim_time_now_us();

	if (rc)
		return rc;
	if (!event)
		return SIM_INVALID_HANDLE;
	if (stream && stream->capture.is_on)
		return SIM_SUCCESS;
	busy_us = stream ? stream->busy_until_us : context->busy_until_us;
	event->done_us = busy_us > now_us ? busy_us : now_us;
	event->is_recorded = true;
	return SIM_SUCCESS;
}

int sim_event_query(const word *arg)
{
	struct sim_event *event = sim_object_find(arg[0], SIM_EVENT);
	int rc;

	if (!event)
		return SIM_INVALID_HANDLE;
	rc = sim_capture_check();
	if (rc)
		return rc;
	return event->done_us > sim_time_now_us() ? SIM_NOT_READY : SIM_SUCCESS;
}

int sim_event_sync(const word *arg)
{
	struct sim_event *event;
	uint64_t until_us = 0;
	int rc;

	pthread_mutex_lock(&sim.lock);
	event = sim_object_find(arg[0], SIM_EVENT);
	rc = event ? sim_capture_check() : SIM_INVALID_HANDLE;
	if (!rc)
		until_us = event->done_us;
	pthread_mutex_unlock(&sim.lock);
	sim_wait_until(until_us);
	return rc;
}

/* (milliseconds out, start, end) */
int sim_event_elapsed(const word *arg)
{
	struct sim_event *start = sim_object_find(arg[1], SIM_EVENT);
	struct sim_event *end = sim_object_find(arg[2], SIM_EVENT);
	uint64_t now_us = sim_time_now_us();

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!start || !end || !start->is_recorded || !end->is_recorded ||
		(start->flags | end->flags) & FLAG_NO_TIMING)
		return SIM_INVALID_HANDLE;
	if (start->done_us > now_us || end->done_us > now_us)
		return SIM_NOT_READY;
	*(float *)arg[0] = (float)((double)end->done_us - (double)start->done_us) / 1000;
	return SIM_SUCCESS;
}
