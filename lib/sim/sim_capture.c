/* Stream capture and its modes (CUDA Driver API, cuThreadExchangeStreamCaptureMode): a call that
 * could disturb a capture is refused to a thread
 *   in relaxed mode       never,
 *   in thread-local mode  while it has a capture of its own that is not relaxed,
 *   in global mode        then, and while any other thread has a capture begun as global;
 * and spoils these captures. Runs on the program's threads with sim.lock held. */
#include "sim/sim.h"

#include <stdlib.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED };
enum status { NONE, ACTIVE, INVALIDATED };

#define MAX_CAPTURES 64

static struct sim_stream *capturing[MAX_CAPTURES];
static uint64_t next_id = 1;

static bool is_disturbed(const struct sim_capture *capture, const struct sim_thread *thread)
{
	if (thread->capture_mode == RELAXED || capture->mode == RELAXED)
		return false;
	if (capture->thread == thread)
		return true;
	return thread->capture_mode == GLOBAL && capture->mode == GLOBAL;
}

int sim_capture_check(void)
{
	int rc = SIM_SUCCESS;

	for (int i = 0; i < MAX_CAPTURES; i++)
		if (capturing[i] && is_disturbed(&capturing[i]->capture, sim_thread())) {
			capturing[i]->capture.is_invalid = true;
			rc = SIM_STREAM_CAPTURE_UNSUPPORTED;
		}
	return rc;
}

int sim_capture_exchange(const word *arg)
{
	int *mode = (int *)arg[0], old = sim_thread()->capture_mode;

	if (!mode)
		return SIM_INVALID_VALUE;
	sim_thread()->capture_mode = *mode;
	*mode = old;
	return SIM_SUCCESS;
}

/* (stream, mode) */
int sim_capture_begin(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = sim_stream_find(arg[0], &context, &stream), place = 0;

	if (rc)
		return rc;
	if ((int)arg[1] < GLOBAL || (int)arg[1] > RELAXED)
		return SIM_INVALID_VALUE;
	if (!stream)
		return SIM_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture.is_on)
		return SIM_ILLEGAL_STATE;
	while (place < MAX_CAPTURES && capturing[place])
		place++;
	if (place == MAX_CAPTURES)
		return SIM_OUT_OF_MEMORY;
	capturing[place] = stream;
	stream->capture = (struct sim_capture){
		.is_on = true, .mode = (int)arg[1], .thread = sim_thread(), .id = next_id++};
	return SIM_SUCCESS;
}

int sim_capture_begin_v1(const word *arg)
{
	return sim_capture_begin((const word[]){arg[0], GLOBAL});
}

static struct sim_work *take(struct sim_stream *stream)
{
	struct sim_work *work = stream->capture.first;

	for (int i = 0; i < MAX_CAPTURES; i++)
		if (capturing[i] == stream)
			capturing[i] = NULL;
	stream->capture = (struct sim_capture){0};
	return work;
}

void sim_capture_drop(struct sim_stream *stream)
{
	sim_work_free(take(stream));
}

/* (stream, graph out) */
int sim_capture_end(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = sim_stream_find(arg[0], &context, &stream);

	if (rc)
		return rc;
	if (!arg[1])
		return SIM_INVALID_VALUE;
	*(void **)arg[1] = NULL;
	if (!stream || !stream->capture.is_on)
		return SIM_ILLEGAL_STATE;
	if (stream->capture.mode != RELAXED && stream->capture.thread != sim_thread()) {
		sim_capture_drop(stream);
		return SIM_STREAM_CAPTURE_WRONG_THREAD;
	}
	if (stream->capture.is_invalid) {
		sim_capture_drop(stream);
		return SIM_STREAM_CAPTURE_INVALIDATED;
	}
	return sim_graph_new(take(stream), (void **)arg[1]);
}

static enum status status_of(const struct sim_stream *stream)
{
	if (!stream || !stream->capture.is_on)
		return NONE;
	return stream->capture.is_invalid ? INVALIDATED : ACTIVE;
}

/* (stream, status out) */
int sim_capture_status(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = sim_stream_find(arg[0], &context, &stream);

	if (!rc && !arg[1])
		rc = SIM_INVALID_VALUE;
	if (!rc)
		*(int *)arg[1] = (int)status_of(stream);
	return rc;
}

/* (stream, status out, id out), and in newer versions more outputs, which stay untouched */
int sim_capture_info(const word *arg)
{
	struct sim_context *context;
	struct sim_stream *stream;
	int rc = sim_stream_find(arg[0], &context, &stream);

	if (!rc && !arg[1])
		rc = SIM_INVALID_VALUE;
	if (rc)
		return rc;
	*(int *)arg[1] = (int)status_of(stream);
	if (arg[2] && stream)
		*(uint64_t *)arg[2] = stream->capture.id;
	return SIM_SUCCESS;
}
