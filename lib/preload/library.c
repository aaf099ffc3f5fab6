/* Loading modules and libraries (CUDA Driver API, "Module Management", "Library Management"). Runs
 * in the user's program on any thread. A load is recorded when it is a device's first of its kind,
 * or took over a millisecond; what it says about the image is read only after the driver has
 * read it with success. */
#include "base/clock.h"
#include "driver/image.h"
#include "driver/loaded.h"
#include "preload/first_call.h"
#include "preload/handlers.h"

#include <string.h>

#define SLOW_LOAD_US 1000

/* Which file the image is in, how large it is, whether the driver had to compile it. */
static void describe_image(struct first_call *call, const void *image, bool is_slow)
{
	struct image_info info;

	image_inspect(image, &info);
	call->size = info.size;
	/* The driver's JIT cache answers in less. */
	if (info.is_ptx_only && is_slow)
		call->how = HEARTH_JIT;
	loaded_file_name(image, call->object, sizeof(call->object));
}

static void describe_file(struct first_call *call, const char *path)
{
	const char *slash = strrchr(path, '/');

	path = slash ? slash + 1 : path;
	memcpy(call->object, path, strnlen(path, sizeof(call->object) - 1) + 1);
	call->object[sizeof(call->object) - 1] = '\0';
}

static CUresult end_load(struct first_call *call, const void *image, const char *path, CUresult rc)
{
	bool is_slow = clock_monotonic_us() - call->start_us > SLOW_LOAD_US;

	first_call_set_device(call, first_call_current_device());
	call->is_forced = is_slow;
	if (rc == CUDA_SUCCESS && (is_slow || !first_call_is_done(call->row, call->device))) {
		if (image)
			describe_image(call, image, is_slow);
		else if (path)
			describe_file(call, path);
	}
	first_call_end(call, rc);
	return rc;
}

/* As CONTEXT_HANDLER; IMAGE is the image in memory, PATH the file's name: one of them is NULL. */
#define LOAD_HANDLER(symbol, TYPES, ARGUMENTS, IMAGE, PATH)                                        \
	CUresult handle_##symbol TYPES                                                             \
	{                                                                                          \
		CUresult(*real) TYPES = (CUresult(*) TYPES)route_real(ROW_##symbol);               \
		struct first_call call;                                                            \
                                                                                                   \
		if (!first_call_has_page())                                                        \
			return real ARGUMENTS;                                                     \
		first_call_time(&call, ROW_##symbol, -1);                                          \
		return end_load(&call, IMAGE, PATH, real ARGUMENTS);                               \
	}

LOAD_HANDLER(cuModuleLoad, (CUmodule * module, const char *path), (module, path), NULL, path)
LOAD_HANDLER(cuModuleLoadData, (CUmodule * module, const void *image), (module, image), image, NULL)
LOAD_HANDLER(cuModuleLoadDataEx,
	(CUmodule * module, const void *image, unsigned int option_count, const void *options,
		const void *values),
	(module, image, option_count, options, values), image, NULL)
LOAD_HANDLER(
	cuModuleLoadFatBinary, (CUmodule * module, const void *image), (module, image), image, NULL)
LOAD_HANDLER(cuLibraryLoadData,
	(CUlibrary * library, const void *image, const void *jit_options, const void *jit_values,
		unsigned int jit_count, const void *options, const void *values,
		unsigned int count),
	(library, image, jit_options, jit_values, jit_count, options, values, count), image, NULL)
LOAD_HANDLER(cuLibraryLoadFromFile,
	(CUlibrary * library, const char *path, const void *jit_options, const void *jit_values,
		unsigned int jit_count, const void *options, const void *values,
		unsigned int count),
	(library, path, jit_options, jit_values, jit_count, options, values, count), NULL, path)
