/* Modules: images loaded into one context. Runs on the program's threads. */
#include "sim/sim.h"

#include <string.h>

static int check_context(struct sim_context **ret_context)
{
	int rc;

	pthread_mutex_lock(&sim.lock);
	rc = sim_context_current(ret_context);
	pthread_mutex_unlock(&sim.lock);
	return rc;
}

static int keep(
	struct sim_image *image, struct sim_context *context, struct sim_holder **ret_module)
{
	struct sim_holder *module;

	pthread_mutex_lock(&sim.lock);
	module = sim_kernel_holder_new(image, SIM_MODULE, context);
	pthread_mutex_unlock(&sim.lock);
	if (!module) {
		sim_image_free(image);
		return SIM_OUT_OF_MEMORY;
	}
	*ret_module = module;
	return SIM_SUCCESS;
}

static int load(const word *arg, bool is_file)
{
	struct sim_context *context;
	struct sim_image *image;
	int rc;

	if (!arg[0] || !arg[1])
		return SIM_INVALID_VALUE;
	rc = check_context(&context);
	if (!rc && is_file)
		rc = sim_image_load_file((const char *)arg[1], false, &image);
	else if (!rc)
		rc = sim_image_load((const void *)arg[1], 0, &image);
	return rc ? rc : keep(image, context, (struct sim_holder **)arg[0]);
}

/* (module out, path) */
int sim_module_load(const word *arg)
{
	return load(arg, true);
}

/* (module out, image), and JIT options, which change nothing here */
int sim_module_load_data(const word *arg)
{
	return load(arg, false);
}

int sim_module_unload(const word *arg)
{
	struct sim_holder *module = sim_object_find(arg[0], SIM_MODULE);

	if (!module)
		return SIM_INVALID_HANDLE;
	sim_object_remove(&module->object);
	return SIM_SUCCESS;
}

/* (function out, module, name) */
int sim_module_function(const word *arg)
{
	struct sim_holder *module;
	struct sim_kernel *kernel;
	int rc = SIM_INVALID_HANDLE;

	if (!arg[0] || !arg[2])
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	module = sim_object_find(arg[1], SIM_MODULE);
	if (module)
		rc = sim_kernel_get(module, (const char *)arg[2], SIM_FUNCTION,
			module->object.context, &kernel);
	pthread_mutex_unlock(&sim.lock);
	if (rc)
		return rc;
	rc = sim_kernel_load((word)kernel);
	if (rc)
		return rc;
	*(struct sim_kernel **)arg[0] = kernel;
	return SIM_SUCCESS;
}

/* (count out, module) */
int sim_module_function_count(const word *arg)
{
	struct sim_holder *module = sim_object_find(arg[1], SIM_MODULE);

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!module)
		return SIM_INVALID_HANDLE;
	*(unsigned int *)arg[0] = (unsigned int)sim_image_count(module->image);
	return SIM_SUCCESS;
}

int sim_module_loading_mode(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	*(int *)arg[0] = sim_env.is_eager ? 1 : 2;
	return SIM_SUCCESS;
}

/* (module out, function) */
int sim_module_of_function(const word *arg)
{
	struct sim_kernel *kernel = sim_object_find(arg[1], SIM_FUNCTION);

	if (!arg[0] || !kernel)
		return arg[0] ? SIM_INVALID_HANDLE : SIM_INVALID_VALUE;
	*(struct sim_holder **)arg[0] = kernel->holder;
	return SIM_SUCCESS;
}

/* (value out, attribute, function) */
int sim_module_function_attribute(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!sim_object_find(arg[2], SIM_FUNCTION) && !sim_object_find(arg[2], SIM_KERNEL))
		return SIM_INVALID_HANDLE;
	return sim_kernel_attribute((int)arg[1], (int *)arg[0]);
}

/* (function, attribute, value) */
int sim_module_set_attribute(const word *arg)
{
	if (!sim_object_find(arg[0], SIM_FUNCTION) && !sim_object_find(arg[0], SIM_KERNEL))
		return SIM_INVALID_HANDLE;
	return SIM_SUCCESS;
}

int sim_module_function_load(const word *arg)
{
	bool is_known;

	pthread_mutex_lock(&sim.lock);
	is_known = sim_object_find(arg[0], SIM_FUNCTION);
	pthread_mutex_unlock(&sim.lock);
	if (!is_known)
		return SIM_INVALID_HANDLE;
	return sim_kernel_load(arg[0]);
}

/* (state out, function) */
int sim_module_function_is_loaded(const word *arg)
{
	struct sim_kernel *kernel = sim_object_find(arg[1], SIM_FUNCTION);

	if (!arg[0] || !kernel)
		return arg[0] ? SIM_INVALID_HANDLE : SIM_INVALID_VALUE;
	*(int *)arg[0] = kernel->is_loaded || sim_env.is_eager;
	return SIM_SUCCESS;
}
