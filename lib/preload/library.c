/* Loading modules and libraries (CUDA Driver API, "Module Management", "Library Management"). Runs
 * in the user's program on any thread. A load is recorded when it is a device's first of its kind,
 * or took over a millisecond; what it says about the image is read only after the driver has
 * read it with success. */
#include "base/clock.h"
#include "driver/image.h"
#include "driver/loaded.h"
#include "preload/first_call.h"
#include "preload/handlers.h"
#include "preload/prefetch.h"
#include "preload/record_images.h"
#include "preload/under.h"

#include <string.h>

#define SLOW_LOAD_US 1000

/* Which file the image is in, how large it is, whether the driver had to compile it. */
static void describe_image(struct first_call *first, const void *image, bool is_slow)
{
	struct image_info info;

	image_inspect(image, first_call_sm(first->device), &info);
	first->size = info.size;
	/* The driver's JIT cache answers in less. */
	if (info.is_compiled && is_slow) {
		first->how = HEARTH_JIT;
		under_compiled();
	}
	loaded_file_name(image, first->object, sizeof(first->object));
}

static void describe_file(struct first_call *first, const char *path)
{
	const char *slash = strrchr(path, '/');

	path = slash ? slash + 1 : path;
	memcpy(first->object, path, strnlen(path, sizeof(first->object) - 1) + 1);
	first->object[sizeof(first->object) - 1] = '\0';
}

/* Does the program get what was loaded ahead? */
static bool claim(struct first_call *first, struct image_call *call, void **ret_handle)
{
	if (!call->code || !ret_handle || !prefetch_is_there())
		return false;
	image_call_look(call);
	if (!prefetch_claim(call, ret_handle, &first->hidden_us))
		return false;
	first->how = HEARTH_PREFETCHED;
	return true;
}

/* `handle` is where the program gets its module or library. */
static CUresult end_load(
	struct first_call *first, struct image_call *call, const void *handle, CUresult rc)
{
	uint64_t took_us = clock_monotonic_us() - first->start_us;
	bool is_slow = took_us + first->hidden_us > SLOW_LOAD_US;

	first_call_set_device(first, first_call_current_device());
	first->is_forced = is_slow;
	if (rc == CUDA_SUCCESS && (is_slow || !first_call_is_done(first->row, first->device))) {
		if (call->code)
			describe_image(first, call->code, is_slow);
		else if (call->path)
			describe_file(first, call->path);
	}
	first_call_end(first, rc);
	if (rc == CUDA_SUCCESS)
		prefetch_count(first->how == HEARTH_PREFETCHED);
	if (rc == CUDA_SUCCESS && record_images_is_on()) {
		image_call_look(call);
		record_images_load(call, *(void *const *)handle,
			first->how == HEARTH_PREFETCHED ? 0 : took_us);
	}
	return rc;
}

/* As CONTEXT_HANDLER; HANDLE is where the result goes, and what follows it fills in a struct
 * image_call: the image in memory, or the file's path, and options. */
#define LOAD_HANDLER(symbol, TYPES, ARGUMENTS, HANDLE, ...)                                        \
	CUresult handle_##symbol TYPES                                                             \
	{                                                                                          \
		CUresult(*real) TYPES = (CUresult(*) TYPES)route_real(ROW_##symbol);               \
		struct first_call first;                                                           \
		struct image_call call;                                                            \
		CUresult rc = CUDA_SUCCESS;                                                        \
                                                                                                   \
		if (!first_call_has_page())                                                        \
			return real ARGUMENTS;                                                     \
		image_call_begin(&call, __VA_ARGS__);                                              \
		first_call_time(&first, ROW_##symbol, -1);                                         \
		if (!claim(&first, &call, (void **)(HANDLE)))                                      \
			rc = real ARGUMENTS;                                                       \
		return end_load(&first, &call, HANDLE, rc);                                        \
	}

LOAD_HANDLER(cuModuleLoad, (CUmodule * module, const char *path), (module, path), module,
	IMAGE_MODULE_FILE, NULL, path, 0, NULL, NULL, NULL, NULL, 0)
LOAD_HANDLER(cuModuleLoadData, (CUmodule * module, const void *image), (module, image), module,
	IMAGE_MODULE_DATA, image, NULL, 0, NULL, NULL, NULL, NULL, 0)
LOAD_HANDLER(cuModuleLoadDataEx,
	(CUmodule * module, const void *image, unsigned int option_count, const void *options,
		const void *values),
	(module, image, option_count, options, values), module, IMAGE_MODULE_DATA_EX, image, NULL,
	option_count, options, values, NULL, NULL, 0)
LOAD_HANDLER(cuModuleLoadFatBinary, (CUmodule * module, const void *image), (module, image), module,
	IMAGE_MODULE_FATBIN, image, NULL, 0, NULL, NULL, NULL, NULL, 0)
LOAD_HANDLER(cuLibraryLoadData,
	(CUlibrary * library, const void *image, const void *jit_options, const void *jit_values,
		unsigned int jit_count, const void *options, const void *values,
		unsigned int count),
	(library, image, jit_options, jit_values, jit_count, options, values, count), library,
	IMAGE_LIBRARY_DATA, image, NULL, jit_count, jit_options, jit_values, options, values, count)
LOAD_HANDLER(cuLibraryLoadFromFile,
	(CUlibrary * library, const char *path, const void *jit_options, const void *jit_values,
		unsigned int jit_count, const void *options, const void *values,
		unsigned int count),
	(library, path, jit_options, jit_values, jit_count, options, values, count), library,
	IMAGE_LIBRARY_FILE, NULL, path, jit_count, jit_options, jit_values, options, values, count)

CUresult handle_cuLibraryUnload(CUlibrary library)
{
	CUresult (*real)(CUlibrary) = (CUresult(*)(CUlibrary))route_real(ROW_cuLibraryUnload);
	CUresult rc = real(library);

	if (rc == CUDA_SUCCESS)
		prefetch_unloaded(library);
	return rc;
}
