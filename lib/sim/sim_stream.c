/* Streams. Work is done when it is submitted; a stream only knows until when it is busy.
 * Runs on the program's threads, with sim.lock held but where it waits. */
#include "sim/sim.h"

#include <stdlib.h>

#define LAST_DEFAULT_STREAM 2 /* 0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
#define KNOWN_FLAGS 1

static uint64_t next_id = 16;

int sim_stream_find(word handle, struct sim_context **ret_context, struct sim_stream **ret_stream)
{
	int rc = sim_context_current(ret_context);

	if (rc)
		return rc;
	*ret_stream = NULL;
	if (handle <= LAST_DEFAULT_STREAM)
		return SIM_SUCCESS;
	*ret_stream = sim_object_find(handle, SIM_STREAM);
	if (!*ret_stream || (*ret_stream)->object.context != *ret_context)
		return SIM_INVALID_HANDLE;
	return SIM_SUCCESS;
}

static void free_stream(struct sim_object *object)
{
	struct sim_stream *stream = (struct sim_stream *)object;

	sim_capture_drop(stream);
	free(stream);
}

/* (stream out, flags, priority) */
int sim_stream_create_priority(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = sim_context_current(&context);

	if (rc)
		return rc;
	if (!arg[0] || (unsigned int)arg[1] & ~(unsigned int)KNOWN_FLAGS)
		return SIM_INVALID_VALUE;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return SIM_OUT_OF_MEMORY;
	stream->flags = (unsigned int)arg[1];
	stream->priority = (int)arg[2];
	stream->id = next_id++;
	sim_object_add(&stream->object, SIM_STREAM, context, free_stream);
	*(struct sim_stream **)arg[0] = stream;
	return SIM_SUCCESS;
}

int sim_stream_create(const word *arg)
{
	return sim_stream_create_priority((const word[]){arg[0], arg[1], 0});
}

int sim_stream_destroy(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc;

	pthread_mutex_lock(&sim.lock);
	rc = sim_stream_find(arg[0], &context, &stream);
	if (!rc && !stream)
		rc = SIM_INVALID_HANDLE;
	if (!rc)
		sim_object_remove(&stream->object);
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

int sim_stream_query(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = sim_stream_find(arg[0], &context, &stream);

	if (rc)
		return rc;
	if (stream && stream->capture.is_on) {
		stream->capture.is_invalid = true;
		return SIM_STREAM_CAPTURE_UNSUPPORTED;
	}
	return (stream ? stream->busy_until_us : context->busy_until_us) > sim_time_now_us()
		       ? SIM_NOT_READY
		       : SIM_SUCCESS;
}

int sim_stream_sync(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	uint64_t until_us = 0;
	int rc;

	pthread_mutex_lock(&sim.lock);
	rc = sim_stream_find(arg[0], &context, &stream);
	if (!rc && stream && stream->capture.is_on) {
		stream->capture.is_invalid = true;
		rc = SIM_STREAM_CAPTURE_UNSUPPORTED;
	}
	if (!rc && !stream)
		rc = sim_capture_check();
	if (!rc)
		until_us = stream ? stream->busy_until_us : context->busy_until_us;
	pthread_mutex_unlock(&sim.lock);
	sim_wait_until(until_us);
	return rc;
}

/* (stream, event, flags) */
int sim_stream_wait_event(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	struct sim_event *event = sim_object_find(arg[1], SIM_EVENT);
	int rc = sim_stream_find(arg[0], &context, &stream);

	if (rc)
		return rc;
	if (!event)
		return SIM_INVALID_HANDLE;
	if (stream && stream->busy_until_us < event->done_us)
		stream->busy_until_us = event->done_us;
	return SIM_SUCCESS;
}

static int describe(
	const word *arg, struct sim_context **ret_context, struct sim_stream **ret_stream)
{
	return arg[1] ? sim_stream_find(arg[0], ret_context, ret_stream) : SIM_INVALID_VALUE;
}

int sim_stream_context(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = describe(arg, &context, &stream);

	if (!rc)
		*(struct sim_context **)arg[1] = context;
	return rc;
}

int sim_stream_flags(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = describe(arg, &context, &stream);

	if (!rc)
		*(unsigned int *)arg[1] = stream ? stream->flags : 0;
	return rc;
}

int sim_stream_priority(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = describe(arg, &context, &stream);

	if (!rc)
		*(int *)arg[1] = stream ? stream->priority : 0;
	return rc;
}

int sim_stream_id(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = describe(arg, &context, &stream);

	if (!rc)
		*(uint64_t *)arg[1] = stream ? stream->id : arg[0] + 1;
	return rc;
}
