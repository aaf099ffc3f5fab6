/* Libraries: images that belong to no context; their kernels are loaded into one when used there.
 * Runs on the program's threads. */
#include "sim/sim.h"

#define BINARY_IS_PRESERVED 1 /* CU_LIBRARY_BINARY_IS_PRESERVED */

/* Library options: their names, and how many. The value of this one does not matter. */
static int flags_of(const int *options, unsigned int count)
{
	int flags = SIM_IMAGE_LIBRARY;

	for (unsigned int i = 0; options && i < count; i++)
		if (options[i] == BINARY_IS_PRESERVED)
			flags |= SIM_IMAGE_PRESERVED;
	return flags;
}

static int load(const word *arg, bool is_file)
{
	struct sim_image *image;
	struct sim_holder *library;
	int rc;

	if (!arg[0] || !arg[1])
		return SIM_INVALID_VALUE;
	rc = is_file ? sim_image_load_file((const char *)arg[1], true, &image)
		     : sim_image_load((const void *)arg[1],
			       flags_of((const int *)arg[5], (unsigned int)arg[7]), &image);
	if (rc)
		return rc;
	pthread_mutex_lock(&sim.lock);
	library = sim_kernel_holder_new(image, SIM_LIBRARY, NULL);
	pthread_mutex_unlock(&sim.lock);
	if (!library) {
		sim_image_free(image);
		return SIM_OUT_OF_MEMORY;
	}
	*(struct sim_holder **)arg[0] = library;
	return SIM_SUCCESS;
}

/* (library out, image, JIT options, their values, their number, library options, their values,
 * their number) */
int sim_library_load_data(const word *arg)
{
	return load(arg, false);
}

int sim_library_load_file(const word *arg)
{
	return load(arg, true);
}

int sim_library_unload(const word *arg)
{
	struct sim_holder *library = sim_object_find(arg[0], SIM_LIBRARY);

	if (!library)
		return SIM_INVALID_HANDLE;
	sim_object_remove(&library->object);
	return SIM_SUCCESS;
}

/* (kernel out, library, name) */
int sim_library_kernel(const word *arg)
{
	struct sim_holder *library = sim_object_find(arg[1], SIM_LIBRARY);

	if (!arg[0] || !arg[2])
		return SIM_INVALID_VALUE;
	if (!library)
		return SIM_INVALID_HANDLE;
	return sim_kernel_get(
		library, (const char *)arg[2], SIM_KERNEL, NULL, (struct sim_kernel **)arg[0]);
}

/* (count out, library) */
int sim_library_kernel_count(const word *arg)
{
	struct sim_holder *library = sim_object_find(arg[1], SIM_LIBRARY);

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!library)
		return SIM_INVALID_HANDLE;
	*(unsigned int *)arg[0] = (unsigned int)sim_image_count(library->image);
	return SIM_SUCCESS;
}

/* (module out, library): a library serves as its own module */
int sim_library_module(const word *arg)
{
	struct sim_holder *library = sim_object_find(arg[1], SIM_LIBRARY);

	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!library)
		return SIM_INVALID_HANDLE;
	*(struct sim_holder **)arg[0] = library;
	return SIM_SUCCESS;
}

/* (function out, kernel) */
int sim_library_function(const word *arg)
{
	struct sim_kernel *kernel, *function = NULL;
	struct sim_context *context;
	int rc = SIM_INVALID_HANDLE;

	if (!arg[0])
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim.lock);
	kernel = sim_object_find(arg[1], SIM_KERNEL);
	if (kernel)
		rc = sim_context_current(&context);
	if (!rc)
		rc = sim_kernel_get(kernel->holder, kernel->name, SIM_FUNCTION, context, &function);
	pthread_mutex_unlock(&sim.lock);
	if (rc)
		return rc;
	rc = sim_kernel_load((word)function);
	if (rc)
		return rc;
	*(struct sim_kernel **)arg[0] = function;
	return SIM_SUCCESS;
}

/* (library out, kernel) */
int sim_library_of_kernel(const word *arg)
{
	struct sim_kernel *kernel = sim_object_find(arg[1], SIM_KERNEL);

	if (!arg[0] || !kernel)
		return arg[0] ? SIM_INVALID_HANDLE : SIM_INVALID_VALUE;
	*(struct sim_holder **)arg[0] = kernel->holder;
	return SIM_SUCCESS;
}

/* (name out, kernel or function) */
int sim_library_kernel_name(const word *arg)
{
	struct sim_kernel *kernel = sim_object_find(arg[1], SIM_KERNEL);

	if (!kernel)
		kernel = sim_object_find(arg[1], SIM_FUNCTION);
	if (!arg[0] || !kernel)
		return arg[0] ? SIM_INVALID_HANDLE : SIM_INVALID_VALUE;
	*(const char **)arg[0] = kernel->name;
	return SIM_SUCCESS;
}

/* (value out, attribute, kernel, device) */
int sim_library_kernel_attribute(const word *arg)
{
	if (!arg[0])
		return SIM_INVALID_VALUE;
	if (!sim_object_find(arg[2], SIM_KERNEL))
		return SIM_INVALID_HANDLE;
	return sim_kernel_attribute((int)arg[1], (int *)arg[0]);
}

/* (attribute, value, kernel, device) */
int sim_library_set_attribute(const word *arg)
{
	return sim_object_find(arg[2], SIM_KERNEL) ? SIM_SUCCESS : SIM_INVALID_HANDLE;
}
