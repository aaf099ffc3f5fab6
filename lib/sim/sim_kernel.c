/* Kernels of modules and libraries, and what their first use costs. Runs on the program's threads.
 */
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

static void free_holder(struct sim_object *object)
{
	struct sim_holder *holder = (struct sim_holder *)object;

	while (holder->kernels) {
		struct sim_kernel *kernel = holder->kernels;

		/* Leaves the list first: one that a dying context has freed is no longer in it. */
		sim_object_remove(&kernel->object);
	}
	sim_image_free(holder->image);
	free(holder);
}

static void free_kernel(struct sim_object *object)
{
	struct sim_kernel *kernel = (struct sim_kernel *)object, **link = &kernel->holder->kernels;

	while (*link && *link != kernel)
		link = &(*link)->next;
	if (*link)
		*link = kernel->next;
	free(kernel);
}

struct sim_holder *sim_kernel_holder_new(
	struct sim_image *image, enum sim_kind kind, struct sim_context *context)
{
	struct sim_holder *holder = calloc(1, sizeof(*holder));

	if (!holder)
		return NULL;
	sim_object_add(&holder->object, kind, context, free_holder);
	holder->image = image;
	return holder;
}

int sim_kernel_get(struct sim_holder *holder, const char *name, enum sim_kind kind,
	struct sim_context *context, struct sim_kernel **ret_kernel)
{
	int work = sim_image_find(holder->image, name);
	struct sim_kernel *kernel = holder->kernels;

	if (sim_image_is_broken(holder->image))
		return SIM_INVALID_IMAGE;
	if (work < 0 || strlen(name) >= SIM_NAME_SIZE)
		return SIM_NOT_FOUND;
	while (kernel && (kernel->object.kind != kind || kernel->object.context != context ||
				 strcmp(kernel->name, name)))
		kernel = kernel->next;
	if (!kernel) {
		kernel = calloc(1, sizeof(*kernel));
		if (!kernel)
			return SIM_OUT_OF_MEMORY;
		sim_object_add(&kernel->object, kind, context, free_kernel);
		kernel->holder = holder;
		kernel->work = (enum sim_work_kind)work;
		kernel->is_loaded = sim_env.is_eager;
		strcpy(kernel->name, name);
		kernel->next = holder->kernels;
		holder->kernels = kernel;
	}
	*ret_kernel = kernel;
	return SIM_SUCCESS;
}

void sim_kernel_load(word handle)
{
	struct sim_kernel *kernel;
	bool is_first;

	pthread_mutex_lock(&sim.lock);
	kernel = sim_object_find(handle, SIM_FUNCTION);
	if (!kernel)
		kernel = sim_object_find(handle, SIM_KERNEL);
	is_first = kernel && !kernel->is_loaded;
	if (is_first)
		kernel->is_loaded = true;
	pthread_mutex_unlock(&sim.lock);
	if (is_first)
		sim_time_wait(sim_time(SIM_STEP_kernel));
}

/* CU_FUNC_ATTRIBUTE_*: threads, static shared, constant and local bytes, registers, PTX and binary
 * version, and the rest. */
int sim_kernel_attribute(int attribute, int *ret_value)
{
	static const int values[] = {1024, 0, 0, 0, 16, 90, 90, 0, 0, -1};

	if (attribute < 0 || (size_t)attribute >= sizeof(values) / sizeof(values[0]))
		return SIM_INVALID_VALUE;
	*ret_value = values[attribute];
	return SIM_SUCCESS;
}
