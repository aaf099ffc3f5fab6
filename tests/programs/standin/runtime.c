/* The stand-in runtime's calls. The primary context is retained at the first call that needs it,
 * and released when the library's destructors run. Runs on the program's threads. */
#include "runtime.h"

#include "start.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 13000
#define MAX_DEVICES 16
#define MAX_FATBINS 64
#define MAX_FUNCTIONS 256
#define BINARY_IS_PRESERVED 1

struct fatbin {
	void *wrapper;
	uintptr_t library;
};

struct function {
	struct fatbin *fatbin;
	const void *host;
	const char *name;
	uintptr_t kernel;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t primaries[MAX_DEVICES];
static struct fatbin fatbins[MAX_FATBINS];
static struct function functions[MAX_FUNCTIONS];
static int fatbin_count, function_count;
static _Thread_local int device, last_error;

static int keep(int rc)
{
	if (rc)
		last_error = rc;
	return rc;
}

/* A current context: the one the program has set, else this device's primary one. */
static int use_context(void)
{
	uintptr_t current = 0;
	int rc = start_driver(), unused;

	if (rc)
		return rc;
	rc = DRIVER(cuCtxGetCurrent, 4000, (uintptr_t)&current);
	if (rc || current)
		return rc;
	pthread_mutex_lock(&lock);
	if (!primaries[device])
		rc = DRIVER(cuDevicePrimaryCtxRetain, 7000, (uintptr_t)&primaries[device],
			(uintptr_t)device);
	current = primaries[device];
	pthread_mutex_unlock(&lock);
	if (rc)
		return rc;
	rc = DRIVER(cuCtxSetCurrent, 4000, current);
	DRIVER(cuCtxGetCurrent, 4000, (uintptr_t)&current);
	DRIVER(cuCtxGetDevice, 13000, (uintptr_t)&unused, 0);
	return rc;
}

int cudaRuntimeGetVersion(int *ret_version)
{
	*ret_version = VERSION;
	return cudaSuccess;
}

/* Success and 0 where there is no driver. */
int cudaDriverGetVersion(int *ret_version)
{
	*ret_version = 0;
	start_driver();
	DRIVER(cuDriverGetVersion, 2020, (uintptr_t)ret_version);
	return cudaSuccess;
}

int cudaGetDeviceCount(int *ret_count)
{
	int rc = start_driver();

	*ret_count = rc ? 0 : start_device_count();
	return keep(rc);
}

int cudaSetDevice(int ordinal)
{
	int rc = start_driver();

	if (!rc && (ordinal < 0 || ordinal >= start_device_count()))
		rc = 101;
	if (rc)
		return keep(rc);
	if (ordinal != device)
		DRIVER(cuCtxSetCurrent, 4000, 0);
	device = ordinal;
	return keep(use_context());
}

int cudaGetDevice(int *ret_device)
{
	*ret_device = device;
	return keep(start_driver());
}

int cudaMalloc(void **ret_pointer, size_t size)
{
	int rc = use_context();

	return keep(rc ? rc : DRIVER(cuMemAlloc, 3020, (uintptr_t)ret_pointer, size));
}

int cudaFree(void *pointer)
{
	int rc = use_context();

	return keep(rc ? rc : DRIVER(cuMemFree, 3020, (uintptr_t)pointer));
}

int cudaMemcpy(void *target, const void *source, size_t size, int kind)
{
	uintptr_t to = (uintptr_t)target, from = (uintptr_t)source;
	int rc = use_context();

	if (rc)
		return keep(rc);
	switch (kind) {
	case cudaMemcpyHostToDevice:
		return keep(DRIVER(cuMemcpyHtoD, 3020, to, from, size));
	case cudaMemcpyDeviceToHost:
		return keep(DRIVER(cuMemcpyDtoH, 3020, to, from, size));
	case cudaMemcpyDeviceToDevice:
		return keep(DRIVER(cuMemcpyDtoD, 3020, to, from, size));
	default:
		return keep(cudaErrorInvalidValue);
	}
}

int cudaMemGetInfo(size_t *ret_free, size_t *ret_total)
{
	int rc = use_context();

	return keep(
		rc ? rc : DRIVER(cuMemGetInfo, 3020, (uintptr_t)ret_free, (uintptr_t)ret_total));
}

int cudaDeviceSynchronize(void)
{
	int rc = use_context();

	return keep(rc ? rc : DRIVER(cuCtxSynchronize, 13000, 0));
}

int cudaDeviceReset(void)
{
	int rc = start_driver();

	return keep(rc ? rc : DRIVER(cuDevicePrimaryCtxReset, 7000, (uintptr_t)device));
}

int cudaGetLastError(void)
{
	int error = last_error;

	last_error = cudaSuccess;
	return error;
}

void **__cudaRegisterFatBinary(void *wrapper)
{
	struct fatbin *fatbin = &fatbins[fatbin_count % MAX_FATBINS];

	fatbin_count++;
	fatbin->wrapper = wrapper;
	return (void **)fatbin;
}

void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
	const char *name, int thread_limit, void *tid, void *bid, void *bdim, void *gdim,
	int *warp_size)
{
	if (function_count < MAX_FUNCTIONS)
		functions[function_count++] = (struct function){
			.fatbin = (struct fatbin *)handle, .host = host_function, .name = name};
}

void __cudaUnregisterFatBinary(void **handle)
{
	struct fatbin *fatbin = (struct fatbin *)handle;

	if (fatbin->library)
		DRIVER(cuLibraryUnload, 12000, fatbin->library);
	fatbin->library = 0;
}

/* The kernel of a host function; its library is loaded at the first use of one of its kernels. */
static int find_kernel(const void *host, uintptr_t *ret_kernel)
{
	struct function *function = NULL;
	int option = BINARY_IS_PRESERVED, rc = cudaSuccess;
	uintptr_t value = 1;

	for (int i = 0; i < function_count; i++)
		if (functions[i].host == host)
			function = &functions[i];
	if (!function)
		return cudaErrorInvalidDeviceFunction;
	pthread_mutex_lock(&lock);
	if (!function->fatbin->library)
		rc = DRIVER(cuLibraryLoadData, 12000, (uintptr_t)&function->fatbin->library,
			(uintptr_t)function->fatbin->wrapper, 0, 0, 0, (uintptr_t)&option,
			(uintptr_t)&value, 1);
	if (!rc && !function->kernel)
		rc = DRIVER(cuLibraryGetKernel, 12000, (uintptr_t)&function->kernel,
			function->fatbin->library, (uintptr_t)function->name);
	pthread_mutex_unlock(&lock);
	*ret_kernel = function->kernel;
	return rc;
}

int cudaLaunchKernel(
	const void *function, dim3 grid, dim3 block, void **params, size_t shared, void *stream)
{
	uintptr_t kernel;
	int rc = use_context();

	if (!rc)
		rc = find_kernel(function, &kernel);
	if (rc)
		return keep(rc);
	return keep(DRIVER(cuLaunchKernel, 4000, kernel, grid.x, grid.y, grid.z, block.x, block.y,
		block.z, shared, (uintptr_t)stream, (uintptr_t)params, 0));
}

/* As libcudart does from its destructors: libraries first, then the contexts. */
__attribute__((destructor)) static void leave(void)
{
	for (int i = 0; i < fatbin_count && i < MAX_FATBINS; i++)
		__cudaUnregisterFatBinary((void **)&fatbins[i]);
	for (int i = 0; i < MAX_DEVICES; i++)
		if (primaries[i])
			DRIVER(cuDevicePrimaryCtxRelease, 7000, (uintptr_t)i);
}
