/* Launches. Parameters of the built-in kernels (bytes in brackets):
 *   fill     target (8) value (4) count (4)             target[i] = value
 *   add      target (8) a (8) b (8) count (4)           target[i] = a[i] + b[i]
 *   scale    target (8) source (8) factor (4) count (4) target[i] = source[i] * factor
 *   copy     target (8) source (8) bytes (4)
 *   spin     microseconds (4)                           keeps the stream busy
 *   nothing, fault                                      no effect; an illegal memory access
 * All elements are 32 bits wide; the grid changes nothing. Runs on the program's threads. */
#include "sim/sim.h"

#include <string.h>

#define MAX_THREADS 1024    /* of a block */
#define LAUNCH_WORDS 8      /* cuLaunchKernel: grid, block, shared bytes, after the function */
#define EX_STREAM_OFFSET 32 /* of hStream in CUlaunchConfig */

static uint32_t read32(void *const *params, int index)
{
	uint32_t value;

	memcpy(&value, params[index], sizeof(value));
	return value;
}

static uint64_t read64(void *const *params, int index)
{
	uint64_t value;

	memcpy(&value, params[index], sizeof(value));
	return value;
}

/* What a kernel called with these parameters does. */
static int describe(enum sim_work_kind kind, void *const *params, struct sim_work *ret_work)
{
	struct sim_work work = {.kind = kind};

	if (!params && kind != SIM_WORK_NOTHING && kind != SIM_WORK_FAULT)
		return SIM_INVALID_VALUE;
	switch (kind) {
	case SIM_WORK_SET:
		work.target = read64(params, 0);
		work.value = read32(params, 1);
		work.size = read32(params, 2);
		work.width = sizeof(uint32_t);
		break;
	case SIM_WORK_ADD:
		work.target = read64(params, 0);
		work.source = read64(params, 1);
		work.other = read64(params, 2);
		work.size = read32(params, 3);
		break;
	case SIM_WORK_SCALE:
		work.target = read64(params, 0);
		work.source = read64(params, 1);
		work.value = read32(params, 2);
		work.size = read32(params, 3);
		break;
	case SIM_WORK_COPY:
		work.target = read64(params, 0);
		work.source = read64(params, 1);
		work.size = read32(params, 2);
		break;
	case SIM_WORK_SPIN:
		work.size = read32(params, 0);
		break;
	case SIM_WORK_NOTHING:
	case SIM_WORK_FAULT:
		break;
	}
	*ret_work = work;
	return SIM_SUCCESS;
}

/* The current context, where it launches for the first time, pays for that. */
static int find(word function, enum sim_work_kind *ret_kind, bool *ret_is_first)
{
	struct sim_context *context;
	struct sim_kernel *kernel;
	int rc;

	pthread_mutex_lock(&sim.lock);
	rc = sim_context_current(&context);
	kernel = sim_object_find(function, SIM_FUNCTION);
	if (!kernel)
		kernel = sim_object_find(function, SIM_KERNEL);
	if (!rc && !kernel)
		rc = SIM_INVALID_HANDLE;
	if (!rc) {
		*ret_kind = kernel->work;
		*ret_is_first = !context->has_launched;
		context->has_launched = true;
	}
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

/* A kernel that goes wrong does so on the device: its launch succeeds, what comes later fails. */
static void set_fault(int code)
{
	struct sim_context *context;

	pthread_mutex_lock(&sim.lock);
	if (!sim_context_current(&context))
		context->fault = code;
	pthread_mutex_unlock(&sim.lock);
}

static int launch(word function, const unsigned int *shape, word stream, void *const *params,
	void *const *extra)
{
	enum sim_work_kind kind;
	struct sim_work work;
	bool is_first;
	int rc;

	for (int i = 0; i < 6; i++)
		if (!shape[i])
			return SIM_INVALID_VALUE;
	if ((uint64_t)shape[3] * shape[4] * shape[5] > MAX_THREADS)
		return SIM_INVALID_VALUE;
	if (!params && extra)
		return SIM_NOT_SUPPORTED;
	rc = find(function, &kind, &is_first);
	if (!rc)
		rc = describe(kind, params, &work);
	if (rc)
		return rc;
	if (is_first)
		sim_time_wait(sim_time(SIM_STEP_first_launch));
	rc = sim_kernel_load(function);
	if (rc)
		return rc;
	rc = sim_work_do(&work, stream, false);
	if (rc == SIM_ILLEGAL_ADDRESS) {
		set_fault(rc);
		rc = SIM_SUCCESS;
	}
	if (!rc && sim_env.is_blocking)
		rc = sim_context_sync(NULL);
	return rc;
}

/* (function, grid x y z, block x y z, shared bytes, stream, parameters, extra) */
int sim_launch(const word *arg)
{
	unsigned int shape[6];

	for (int i = 0; i < 6; i++)
		shape[i] = (unsigned int)arg[1 + i];
	return launch(arg[0], shape, arg[LAUNCH_WORDS], (void *const *)arg[LAUNCH_WORDS + 1],
		(void *const *)arg[LAUNCH_WORDS + 2]);
}

/* The same without extra. */
int sim_launch_cooperative(const word *arg)
{
	unsigned int shape[6];

	for (int i = 0; i < 6; i++)
		shape[i] = (unsigned int)arg[1 + i];
	return launch(arg[0], shape, arg[LAUNCH_WORDS], (void *const *)arg[LAUNCH_WORDS + 1], NULL);
}

/* (config, function, parameters, extra) */
int sim_launch_ex(const word *arg)
{
	const char *config = (const char *)arg[0];
	word stream;

	if (!config)
		return SIM_INVALID_VALUE;
	memcpy(&stream, config + EX_STREAM_OFFSET, sizeof(stream));
	return launch(arg[1], (const unsigned int *)config, stream, (void *const *)arg[2],
		(void *const *)arg[3]);
}

/* (stream, function, data): called once the stream's work is done, on the calling thread */
int sim_launch_host(const word *arg)
{
	void (*function)(void *) = (void (*)(void *))arg[1];
	int rc;

	if (!function)
		return SIM_INVALID_VALUE;
	rc = sim_stream_sync(arg);
	if (!rc)
		function((void *)arg[2]);
	return rc;
}
