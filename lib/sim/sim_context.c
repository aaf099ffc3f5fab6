/* Contexts and the stack of current ones that every thread has.
 *
 * Runs on the program's threads. A destroyed context stays in the table of objects, so that its
 * handle, which may be on any thread's stack, is answered with 709. */
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define CONTEXT_BYTES                                                                              \
	(524 * SIM_MIB) /* with the 4 MiB of cuInit: what a process is seen to hold                \
			 */
#define API_V1 3010
#define API_V2 3020
#define SCHEDULE_FLAGS 7 /* at most one of them */
#define MAP_HOST 8       /* always on */
#define KNOWN_FLAGS 0xff
#define NO_LIMIT SIZE_MAX
#define LEAST_PRIORITY 0
#define GREATEST_PRIORITY (-5)

static uint64_t next_id = 1;

int sim_context_current(struct sim_context **ret_context)
{
	struct sim_context *context =
		sim_thread()->depth ? sim_thread()->stack[sim_thread()->depth - 1] : NULL;

	if (!context)
		return SIM_INVALID_CONTEXT;
	if (!context->is_alive)
		return SIM_CONTEXT_IS_DESTROYED;
	if (context->fault)
		return context->fault;
	*ret_context = context;
	return SIM_SUCCESS;
}

bool sim_context_are_flags(unsigned int flags)
{
	unsigned int schedule = flags & SCHEDULE_FLAGS;

	return !(flags & ~(unsigned int)KNOWN_FLAGS) && !(schedule & (schedule - 1));
}

/* What more or fewer hardware connections cost: 60, 115 and 590 ms with 1, 8 and 32. */
static double connection_factor(void)
{
	if (sim_env.connections <= 8)
		return 0.52 + (sim_env.connections - 1) * 0.48 / 7;
	return 1 + (sim_env.connections - 8) * 4.13 / 24;
}

int sim_context_make(struct sim_context *context)
{
	int physical = sim.physical[context->device], rc = sim_machine_enter(physical);

	if (rc)
		return rc;
	rc = sim_machine_charge(physical, CONTEXT_BYTES);
	if (rc) {
		sim_machine_leave(physical);
		return rc;
	}
	rc = sim_attach(context);
	if (rc) {
		sim_machine_refund(physical, CONTEXT_BYTES);
		sim_machine_leave(physical);
		return rc;
	}
	sim_machine_kernel(sim_time(SIM_STEP_retain) * connection_factor());
	sim_init_touch_state();
	pthread_mutex_lock(&sim.lock);
	context->is_alive = true;
	context->has_launched = false;
	memset(context->limits, 0, sizeof(context->limits));
	context->busy_until_us = 0;
	context->fault = SIM_SUCCESS;
	context->id = next_id++;
	pthread_mutex_unlock(&sim.lock);
	return SIM_SUCCESS;
}

void sim_context_unmake(struct sim_context *context)
{
	int physical = sim.physical[context->device];

	pthread_mutex_lock(&sim.lock);
	context->is_alive = false;
	sim_object_remove_owned(context);
	sim_memory_free_all(context);
	sim_peer_forget(context);
	pthread_mutex_unlock(&sim.lock);
	sim_detach(context);
	sim_time_wait(sim_time(SIM_STEP_release));
	sim_machine_refund(physical, CONTEXT_BYTES);
	sim_machine_leave(physical);
}

static int create(
	struct sim_context **ret_context, unsigned int flags, int device, unsigned int api_version)
{
	struct sim_context *context;
	int rc;

	if (!ret_context || !sim_context_are_flags(flags))
		return SIM_INVALID_VALUE;
	if (device < 0 || device >= sim.device_count)
		return SIM_INVALID_DEVICE;
	context = calloc(1, sizeof(*context));
	if (!context)
		return SIM_OUT_OF_MEMORY;
	context->device = device;
	context->flags = flags;
	context->api_version = api_version;
	pthread_mutex_lock(&sim.context_lock[device]);
	rc = sim_context_make(context);
	pthread_mutex_unlock(&sim.context_lock[device]);
	if (rc) {
		free(context);
		return rc;
	}
	pthread_mutex_lock(&sim.lock);
	sim_object_add(&context->object, SIM_CONTEXT, NULL, NULL);
	rc = sim_context_push((const word[]){(word)context});
	pthread_mutex_unlock(&sim.lock);
	*ret_context = context;
	return rc;
}

int sim_context_create_v1(const word *arg)
{
	return create((struct sim_context **)arg[0], (unsigned int)arg[1], (int)arg[2], API_V1);
}

int sim_context_create_v2(const word *arg)
{
	return create((struct sim_context **)arg[0], (unsigned int)arg[1], (int)arg[2], API_V2);
}

/* (context, affinity parameters, their number, flags, device) */
int sim_context_create_v3(const word *arg)
{
	return create((struct sim_context **)arg[0], (unsigned int)arg[3], (int)arg[4], API_V2);
}

/* (context, parameters, flags, device) */
int sim_context_create_v4(const word *arg)
{
	return create((struct sim_context **)arg[0], (unsigned int)arg[2], (int)arg[3], API_V2);
}

int sim_context_destroy(const word *arg)
{
	struct sim_context *context;
	int device, rc = SIM_SUCCESS;

	if (!arg[0])
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	context = sim_object_find(arg[0], SIM_CONTEXT);
	if (!context || context->is_primary)
		rc = SIM_INVALID_CONTEXT;
	else if (!context->is_alive)
		rc = SIM_CONTEXT_IS_DESTROYED;
	else
		context->is_alive = false;
	pthread_mutex_unlock(&sim.lock);
	if (rc)
		return rc;
	device = context->device;
	if (sim_thread()->depth && sim_thread()->stack[sim_thread()->depth - 1] == context)
		sim_thread()->depth--;
	pthread_mutex_lock(&sim.context_lock[device]);
	sim_context_unmake(context);
	pthread_mutex_unlock(&sim.context_lock[device]);
	return SIM_SUCCESS;
}

int sim_context_get(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	*(struct sim_context **)arg[0] =
		sim_thread()->depth ? sim_thread()->stack[sim_thread()->depth - 1] : NULL;
	return SIM_SUCCESS;
}

static struct sim_context *find_live(word handle)
{
	struct sim_context *context = sim_object_find(handle, SIM_CONTEXT);

	return context && context->is_alive ? context : NULL;
}

int sim_context_set(const word *arg)
{
	struct sim_context *context = NULL;

	if (arg[0]) {
		context = sim_object_find(arg[0], SIM_CONTEXT);
		if (!context)
			return SIM_INVALID_CONTEXT;
		if (!context->is_alive && !context->is_primary)
			return SIM_CONTEXT_IS_DESTROYED;
	}
	if (!context) {
		if (sim_thread()->depth)
			sim_thread()->depth--;
		return SIM_SUCCESS;
	}
	if (!sim_thread()->depth)
		sim_thread()->depth = 1;
	sim_thread()->stack[sim_thread()->depth - 1] = context;
	return SIM_SUCCESS;
}

int sim_context_push(const word *arg)
{
	struct sim_context *context = sim_object_find(arg[0], SIM_CONTEXT);

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!context)
		return SIM_INVALID_CONTEXT;
	if (sim_thread()->depth == SIM_STACK_DEPTH)
		return SIM_OUT_OF_MEMORY;
	sim_thread()->stack[sim_thread()->depth++] = context;
	return SIM_SUCCESS;
}

int sim_context_pop(const word *arg)
{
	if (!sim_thread()->depth)
		return SIM_INVALID_CONTEXT;
	sim_thread()->depth--;
	if (arg[0])
		*(struct sim_context **)arg[0] = sim_thread()->stack[sim_thread()->depth];
	return SIM_SUCCESS;
}

/* The context of a handle, the current one for 0. */
static int of_handle(word handle, struct sim_context **ret_context)
{
	if (!handle)
		return sim_context_current(ret_context);
	*ret_context = find_live(handle);
	return *ret_context ? SIM_SUCCESS : SIM_INVALID_CONTEXT;
}

int sim_context_device_of(const word *arg)
{
	struct sim_context *context;
	int rc = of_handle(arg[1], &context);

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!rc)
		*(int *)arg[0] = context->device;
	return rc;
}

/* Also of a context that is current but no longer active. */
int sim_context_device(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!sim_thread()->depth)
		return SIM_INVALID_CONTEXT;
	*(int *)arg[0] = sim_thread()->stack[sim_thread()->depth - 1]->device;
	return SIM_SUCCESS;
}

int sim_context_api(const word *arg)
{
	struct sim_context *context;
	int rc = of_handle(arg[0], &context);

	if (!arg[1])
		return SIM_INVALID_VALUE;
	if (!rc)
		*(unsigned int *)arg[1] = context->api_version ? context->api_version : API_V2;
	return rc;
}

int sim_context_get_flags(const word *arg)
{
	struct sim_context *context;
	int rc = sim_context_current(&context);

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!rc)
		*(unsigned int *)arg[0] = context->flags | MAP_HOST;
	return rc;
}

int sim_context_set_flags(const word *arg)
{
	struct sim_context *context;
	int rc = sim_context_current(&context);

	if (!rc)
		context->flags = (unsigned int)arg[0];
	return rc;
}

int sim_context_get_id(const word *arg)
{
	struct sim_context *context;
	int rc = of_handle(arg[0], &context);

	if (!arg[1])
		return SIM_INVALID_VALUE;
	if (!rc)
		*(uint64_t *)arg[1] = context->id;
	return rc;
}

/* (limit, value): of the printf buffer's and the heap's size, which are settled by the first code
 * that comes into the context. */
int sim_context_set_limit(const word *arg)
{
	struct sim_context *context;
	int rc = sim_context_current(&context);

	if (rc)
		return rc;
	if ((int)arg[0] != SIM_PRINTF_LIMIT && (int)arg[0] != SIM_HEAP_LIMIT)
		return SIM_NOT_SUPPORTED;
	if (context->residents)
		return SIM_INVALID_VALUE;
	context->limits[(int)arg[0]] = arg[1];
	return SIM_SUCCESS;
}

/* CU_LIMIT_*, by number, as an H200 answers. */
int sim_context_limit(const word *arg)
{
	static const size_t limits[] = {
		1024, 8650752, 8388608, NO_LIMIT, 2048, 64, 11796480, 232448, 0, NO_LIMIT};
	struct sim_context *context;
	int rc = sim_context_current(&context);

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (rc)
		return rc;
	if ((int)arg[1] < 0 || (size_t)(int)arg[1] >= sizeof(limits) / sizeof(limits[0]))
		return SIM_INVALID_VALUE;
	if (limits[(int)arg[1]] == NO_LIMIT)
		return SIM_UNSUPPORTED_LIMIT;
	*(size_t *)arg[0] = limits[(int)arg[1]];
	if ((int)arg[1] < SIM_LIMITS && context->limits[(int)arg[1]])
		*(size_t *)arg[0] = context->limits[(int)arg[1]];
	return SIM_SUCCESS;
}

int sim_context_priorities(const word *arg)
{
	struct sim_context *context;
	int rc = sim_context_current(&context);

	if (!rc && arg[0])
		*(int *)arg[0] = LEAST_PRIORITY;
	if (!rc && arg[1])
		*(int *)arg[1] = GREATEST_PRIORITY;
	return rc;
}

int sim_context_sync_of(const word *arg)
{
	struct sim_context *context;
	uint64_t until_us = 0;
	int rc;

	pthread_mutex_lock(&sim.lock);
	rc = of_handle(arg[0], &context);
	if (!rc)
		rc = sim_capture_check();
	if (!rc)
		until_us = context->busy_until_us;
	pthread_mutex_unlock(&sim.lock);
	sim_wait_until(until_us);
	return rc;
}

int sim_context_sync(const word *arg)
{
	return sim_context_sync_of((const word[]){0});
}
