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
		rc = sim_context_make(context);
	}
	pthread_mutex_lock(&sim.lock);
	if (!rc) {
		context->flags = sim.primary_flags[device];
		context->references++;
		*ret_context = context;
	}
	pthread_mutex_unlock(&sim.lock);
	pthread_mutex_unlock(&sim.context_lock[device]);
	return rc;
}

/* One reference less. A reset has not taken the references away, so releases that come after it
 * still count. */
int sim_primary_release(const word *arg)
{
	int device = device_of(arg[0]), rc = SIM_SUCCESS;
	struct sim_context *context;

	if (device < 0)
		return SIM_INVALID_DEVICE;
	context = &sim.primary[device];
	pthread_mutex_lock(&sim.context_lock[device]);
	if (!context->references)
		rc = SIM_INVALID_CONTEXT;
	else if (!--context->references) {
		if (context->is_alive)
			sim_context_unmake(context);
		pthread_mutex_lock(&sim.lock);
		sim.primary_flags[device] = 0;
		pthread_mutex_unlock(&sim.lock);
	}
	pthread_mutex_unlock(&sim.context_lock[device]);
	return rc;
}

/* The older one does not mind a release too many. */
int sim_primary_release_v1(const word *arg)
{
	int rc = sim_primary_release(arg);

	return rc == SIM_INVALID_CONTEXT ? SIM_SUCCESS : rc;
}

int sim_primary_reset(const word *arg)
{
	int device = device_of(arg[0]);

	if (device < 0)
		return SIM_INVALID_DEVICE;
	pthread_mutex_lock(&sim.context_lock[device]);
	if (sim.primary[device].is_alive)
		sim_context_unmake(&sim.primary[device]);
	pthread_mutex_unlock(&sim.context_lock[device]);
	return SIM_SUCCESS;
}

/* Takes flags also while the context is active. */
int sim_primary_set_flags(const word *arg)
{
	int device = device_of(arg[0]);
	unsigned int flags = (unsigned int)arg[1];

	if (device < 0)
		return SIM_INVALID_DEVICE;
	if (!sim_context_are_flags(flags))
		return SIM_INVALID_VALUE;
	sim.primary_flags[device] = flags;
	sim.primary[device].flags = flags;
	return SIM_SUCCESS;
}

int sim_primary_set_flags_v1(const word *arg)
{
	int device = device_of(arg[0]);

	if (device >= 0 && sim.primary[device].is_alive)
		return SIM_PRIMARY_CONTEXT_ACTIVE;
	return sim_primary_set_flags(arg);
}

int sim_primary_state(const word *arg)
{
	int device = device_of(arg[0]);

	if (device < 0)
		return SIM_INVALID_DEVICE;
	if (!arg[1] || !arg[2])
		return SIM_INVALID_VALUE;
	*(unsigned int *)arg[1] = sim.primary_flags[device];
	*(int *)arg[2] = sim.primary[device].is_alive;
	return SIM_SUCCESS;
}
