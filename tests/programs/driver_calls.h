/* The driver API as these test programs use it: own minimal declarations, found through dlopen or,
 * with DRIVER_LINKED, by being linked to libcuda.so.1. Every program includes it once. */
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct context *context_t;
typedef struct module *module_t;
typedef struct function *function_t;
typedef struct stream *stream_t;
typedef uint64_t pointer_t;

#define DRIVER_CALLS(CALL)                                                                         \
	CALL(cuInit, (unsigned int flags))                                                         \
	CALL(cuDriverGetVersion, (int *ret_version))                                               \
	CALL(cuDeviceGetCount, (int *ret_count))                                                   \
	CALL(cuDeviceGet, (int *ret_device, int ordinal))                                          \
	CALL(cuDeviceGetName, (char *ret_name, int size, int device))                              \
	CALL(cuDevicePrimaryCtxRetain, (context_t * ret_context, int device))                      \
	CALL(cuDevicePrimaryCtxRelease_v2, (int device))                                           \
	CALL(cuDevicePrimaryCtxGetState, (int device, unsigned int *ret_flags, int *ret_active))   \
	CALL(cuCtxCreate_v2, (context_t * ret_context, unsigned int flags, int device))            \
	CALL(cuCtxDestroy_v2, (context_t context))                                                 \
	CALL(cuCtxGetCurrent, (context_t * ret_context))                                           \
	CALL(cuCtxSetCurrent, (context_t context))                                                 \
	CALL(cuCtxSynchronize, (void))                                                             \
	CALL(cuMemAlloc_v2, (pointer_t * ret_pointer, size_t size))                                \
	CALL(cuMemFree_v2, (pointer_t pointer))                                                    \
	CALL(cuMemcpyHtoD_v2, (pointer_t target, const void *source, size_t size))                 \
	CALL(cuMemcpyDtoH_v2, (void *target, pointer_t source, size_t size))                       \
	CALL(cuModuleLoadData, (module_t * ret_module, const void *image))                         \
	CALL(cuModuleUnload, (module_t module))                                                    \
	CALL(cuModuleGetFunction, (function_t * ret_function, module_t module, const char *name))  \
	CALL(cuLaunchKernel,                                                                       \
		(function_t function, unsigned int grid_x, unsigned int grid_y,                    \
			unsigned int grid_z, unsigned int block_x, unsigned int block_y,           \
			unsigned int block_z, unsigned int shared, stream_t stream, void **params, \
			void **extra))

#ifdef DRIVER_LINKED
#define CALL(name, parameters) int name parameters;
DRIVER_CALLS(CALL)
#undef CALL

static inline void driver_open(void)
{
}
#else
#define CALL(name, parameters) static int(*name) parameters __attribute__((unused));
DRIVER_CALLS(CALL)
#undef CALL

/* Ends the program with status 77 where there is no driver. */
static inline void driver_open(void)
{
	void *handle = dlopen("libcuda.so.1", RTLD_NOW);

	if (!handle) {
		printf("no driver: %s\n", dlerror());
		exit(77);
	}
#define CALL(name, parameters)                                                                     \
	*(void **)&name = dlsym(handle, #name);                                                    \
	if (!name)                                                                                 \
		printf("no %s\n", #name);
	DRIVER_CALLS(CALL)
#undef CALL
}
#endif

/* Runs a call, prints its name and result; exits with status 1 where that is not 0. */
#define CHECK(call) driver_check(#call, call)

static inline void driver_check(const char *text, int rc)
{
	int length = 0;

	while (text[length] && text[length] != '(')
		length++;
	printf("%.*s %d\n", length, text, rc);
	fflush(stdout);
	if (rc)
		exit(1);
}
