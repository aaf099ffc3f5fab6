/* Device work: copies, fills and the built-in kernels. Its effect comes at once, its time passes in
 * the stream: a synchronise waits until then. Runs on the program's threads. */
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

static bool is_device(uint64_t address, uint64_t size)
{
	return sim_memory_covers(address, size);
}

static bool is_valid(const struct sim_work *work)
{
	const uint64_t bytes = work->size * sizeof(uint32_t);

	switch (work->kind) {
	case SIM_WORK_COPY:
		return !work->size ||
		       ((work->is_host_target || is_device(work->target, work->size)) &&
			       (work->is_host_source || is_device(work->source, work->size)));
	case SIM_WORK_SET:
		return !work->size || is_device(work->target, work->size * work->width);
	case SIM_WORK_ADD:
		return is_device(work->target, bytes) && is_device(work->source, bytes) &&
		       is_device(work->other, bytes);
	case SIM_WORK_SCALE:
		return is_device(work->target, bytes) && is_device(work->source, bytes);
	case SIM_WORK_SPIN:
	case SIM_WORK_NOTHING:
		return true;
	case SIM_WORK_FAULT:
		break;
	}
	return false;
}

static void set(const struct sim_work *work)
{
	char *target = (char *)work->target;

	for (uint64_t i = 0; i < work->size; i++)
		memcpy(target + i * work->width, &work->value, work->width);
}

int sim_work_run(
	const struct sim_work *work, struct sim_context *context, struct sim_stream *stream)
{
	uint32_t *target = (uint32_t *)work->target;
	const uint32_t *source = (const uint32_t *)work->source;
	const uint32_t *other = (const uint32_t *)work->other;
	uint64_t *busy_us = stream ? &stream->busy_until_us : &context->busy_until_us;
	uint64_t now_us;
	int rc = sim_mps_code();

	if (rc)
		return rc;
	if (!is_valid(work))
		return SIM_ILLEGAL_ADDRESS;
	switch (work->kind) {
	case SIM_WORK_COPY:
		memmove(target, source, work->size);
		break;
	case SIM_WORK_SET:
		set(work);
		break;
	case SIM_WORK_ADD:
		for (uint64_t i = 0; i < work->size; i++)
			target[i] = source[i] + other[i];
		break;
	case SIM_WORK_SCALE:
		for (uint64_t i = 0; i < work->size; i++)
			target[i] = source[i] * work->value;
		break;
	case SIM_WORK_SPIN:
		now_us = sim_time_now_us();
		*busy_us = (*busy_us > now_us ? *busy_us : now_us) + work->size;
		if (*busy_us > context->busy_until_us)
			context->busy_until_us = *busy_us;
		break;
	case SIM_WORK_NOTHING:
	case SIM_WORK_FAULT:
		break;
	}
	return SIM_SUCCESS;
}

static int keep(struct sim_capture *capture, const struct sim_work *work)
{
	struct sim_work *copy;

	if (capture->is_invalid)
		return SIM_STREAM_CAPTURE_INVALIDATED;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return SIM_OUT_OF_MEMORY;
	*copy = *work;
	copy->next = NULL;
	if (capture->last)
		capture->last->next = copy;
	else
		capture->first = copy;
	capture->last = copy;
	return SIM_SUCCESS;
}

int sim_work_do(const struct sim_work *work, word handle, bool is_sync)
{
	struct sim_context *context;
	struct sim_stream *stream;
	uint64_t until_us = 0;
	int rc;

	pthread_mutex_lock(&sim.lock);
	rc = sim_stream_find(handle, &context, &stream);
	if (!rc && is_sync) {
		rc = sim_capture_check();
		until_us = context->busy_until_us;
		pthread_mutex_unlock(&sim.lock);
		sim_wait_until(until_us);
		pthread_mutex_lock(&sim.lock);
		if (!rc)
			rc = sim_stream_find(handle, &context, &stream);
	}
	if (!rc) {
		if (stream && stream->capture.is_on)
			rc = keep(&stream->capture, work);
		else
			rc = sim_work_run(work, context, stream);
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

struct sim_work *sim_work_copy(const struct sim_work *first)
{
	struct sim_work *copies = NULL, **link = &copies;

	for (; first; first = first->next) {
		*link = malloc(sizeof(**link));
		if (!*link)
			return sim_work_free(copies);
		**link = *first;
		(*link)->next = NULL;
		link = &(*link)->next;
	}
	return copies;
}

struct sim_work *sim_work_free(struct sim_work *first)
{
	while (first) {
		struct sim_work *next = first->next;

		free(first);
		first = next;
	}
	return NULL;
}
