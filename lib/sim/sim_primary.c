/* Primary contexts: one for each device, counted, with one handle for the life of the process.
 *
 *           retain (first)                     release (last), reset
 *   inactive ------------> active, references 1.. ------------> inactive
 *
 * Runs on the program's threads. context_lock[device] is held for the whole of a change, sim.lock
 * only for its short parts. */
#include "sim/sim.h"

static int device_of(word device)
{
	return (int)device >= 0 && (int)device < sim.device_count ? (int)device : -1;
}

int sim_primary_retain(const word *arg)
{
	struct sim_context **ret_context = (struct sim_context **)arg[0];
	int device = device_of(arg[1]), rc = SIM_SUCCESS;
	struct sim_context *context;

	if (!ret_context)
		return SIM_INVALID_VALUE;
	if (device < 0)
		return SIM_INVALID_DEVICE;
	context = &sim.primary[device];
	pthread_mutex_lock(&sim.context_lock[device]);
	if (!context->is_alive) {
		sim_env_read_retain();
		sim_init_touch_retain();
		context->flags = (unsigned int)sim.primary_flags[device];
		rc = sim_context_make(context);
	}
	pthread_mutex_lock(&sim.lock);
	if (!rc) {
		context->references++;
		*ret_context = context;
	}
	pthread_mutex_unlock(&sim.lock);
	pthread_mutex_unlock(&sim.context_lock[device]);
	return rc;
}

int sim_primary_release(const word *arg)
{
	int device = device_of(arg[0]), rc = SIM_SUCCESS;
	struct sim_context *context;

	if (device < 0)
		return SIM_INVALID_DEVICE;
	context = &sim.primary[device];
	pthread_mutex_lock(&sim.context_lock[device]);
	if (!context->is_alive || !context->references)
		rc = SIM_INVALID_CONTEXT;
	else if (!--context->references)
		sim_context_unmake(context);
	pthread_mutex_unlock(&sim.context_lock[device]);
	return rc;
}

int sim_primary_reset(const word *arg)
{
	int device = device_of(arg[0]);
	struct sim_context *context;

	if (device < 0)
		return SIM_INVALID_DEVICE;
	context = &sim.primary[device];
	pthread_mutex_lock(&sim.context_lock[device]);
	if (context->is_alive)
		sim_context_unmake(context);
	context->references = 0;
	pthread_mutex_unlock(&sim.context_lock[device]);
	return SIM_SUCCESS;
}

int sim_primary_set_flags(const word *arg)
{
	int device = device_of(arg[0]);

	if (device < 0)
		return SIM_INVALID_DEVICE;
	if (sim.primary[device].is_alive && sim.primary[device].flags != (unsigned int)arg[1])
		return SIM_PRIMARY_CONTEXT_ACTIVE;
	sim.primary_flags[device] = (int)arg[1];
	return SIM_SUCCESS;
}

int sim_primary_state(const word *arg)
{
	int device = device_of(arg[0]);

	if (device < 0)
		return SIM_INVALID_DEVICE;
	if (!arg[1] || !arg[2])
		return SIM_INVALID_VALUE;
	*(unsigned int *)arg[1] = (unsigned int)sim.primary_flags[device];
	*(int *)arg[2] = sim.primary[device].is_alive;
	return SIM_SUCCESS;
}
