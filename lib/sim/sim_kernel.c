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
	while (holder->residents) {
		struct sim_resident *resident = holder->residents;

		sim_object_remove(&resident->object);
	}
	sim_image_free(holder->image);
	free(holder);
}

static void free_resident(struct sim_object *object)
{
	struct sim_resident *resident = (struct sim_resident *)object,
			    **link = &resident->holder->residents;

	while (*link && *link != resident)
		link = &(*link)->next;
	if (*link)
		*link = resident->next;
	sim_machine_refund(sim.physical[object->context->device], resident->charged);
	object->context->residents--;
	free(resident);
}

/* The holder's code comes into the context, if it is not there. With sim.lock held. */
static int load_code(struct sim_holder *holder, struct sim_context *context)
{
	struct sim_resident *resident = holder->residents;

	while (resident && resident->object.context != context)
		resident = resident->next;
	if (resident)
		return SIM_SUCCESS;
	resident = calloc(1, sizeof(*resident));
	if (!resident ||
		sim_machine_charge(sim.physical[context->device], sim_image_size(holder->image))) {
		free(resident);
		return SIM_OUT_OF_MEMORY;
	}
	sim_object_add(&resident->object, SIM_RESIDENT, context, free_resident);
	resident->holder = holder;
	resident->charged = sim_image_size(holder->image);
	resident->next = holder->residents;
	holder->residents = resident;
	context->residents++;
	return SIM_SUCCESS;
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
	uint64_t hash = sim_image_hash(name);
	struct sim_kernel *kernel = holder->kernels;

	if (sim_image_is_broken(holder->image))
		return SIM_INVALID_IMAGE;
	if (work < 0 || strlen(name) >= SIM_NAME_SIZE)
		return SIM_NOT_FOUND;
	while (kernel && (kernel->object.kind != kind || kernel->object.context != context ||
				 kernel->hash != hash || strcmp(kernel->name, name)))
		kernel = kernel->next;
	if (!kernel) {
		kernel = calloc(1, sizeof(*kernel));
		if (!kernel)
			return SIM_OUT_OF_MEMORY;
		sim_object_add(&kernel->object, kind, context, free_kernel);
		kernel->holder = holder;
		kernel->work = (enum sim_work_kind)work;
		kernel->hash = hash;
		strcpy(kernel->name, name);
		kernel->next = holder->kernels;
		holder->kernels = kernel;
	}
	*ret_kernel = kernel;
	return SIM_SUCCESS;
}

/* A library's kernel is, in each context, a function of its own. */
static int find_function(word handle, struct sim_kernel **ret_function)
{
	struct sim_kernel *kernel;
	struct sim_context *context;
	int rc;

	*ret_function = sim_object_find(handle, SIM_FUNCTION);
	if (*ret_function)
		return SIM_SUCCESS;
	kernel = sim_object_find(handle, SIM_KERNEL);
	if (!kernel)
		return SIM_INVALID_HANDLE;
	rc = sim_context_current(&context);
	return rc ? rc
		  : sim_kernel_get(
			    kernel->holder, kernel->name, SIM_FUNCTION, context, ret_function);
}

int sim_kernel_load(word handle)
{
	struct sim_kernel *function;
	bool is_first = false;
	int rc;

	pthread_mutex_lock(&sim.lock);
	rc = find_function(handle, &function);
	if (!rc && !function->is_loaded) {
		rc = load_code(function->holder, function->object.context);
		is_first = !rc;
		function->is_loaded = is_first;
	}
	pthread_mutex_unlock(&sim.lock);
	if (is_first && !sim_env.is_eager)
		sim_time_wait(sim_time(SIM_STEP_kernel));
	return rc;
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
