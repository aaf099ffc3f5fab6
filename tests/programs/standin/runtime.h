/* A stand-in for CUDA's runtime library: it makes libcudart 13.0's lookups and first calls in
 * libcudart's order, without its authenticity check, and has as many calls as tests need. Built as
 * libstandinrt.so.13 and, for programs that carry their runtime inside, as a static library; each
 * copy keeps its own state. Calls return cudaError_t values: mostly the driver's codes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define STANDIN_API __attribute__((visibility("default")))

enum {
	cudaSuccess = 0,
	cudaErrorInvalidValue = 1,
	cudaErrorInsufficientDriver = 35,
	cudaErrorCallRequiresNewerDriver = 36,
	cudaErrorInvalidDeviceFunction = 98,
};

enum { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };

typedef struct {
	unsigned int x, y, z;
} dim3;

STANDIN_API int cudaRuntimeGetVersion(int *ret_version);
STANDIN_API int cudaDriverGetVersion(int *ret_version);
STANDIN_API int cudaGetDeviceCount(int *ret_count);
STANDIN_API int cudaSetDevice(int device);
STANDIN_API int cudaGetDevice(int *ret_device);
STANDIN_API int cudaMalloc(void **ret_pointer, size_t size);
STANDIN_API int cudaFree(void *pointer);
STANDIN_API int cudaMemcpy(void *target, const void *source, size_t size, int kind);
STANDIN_API int cudaMemGetInfo(size_t *ret_free, size_t *ret_total);
STANDIN_API int cudaDeviceSynchronize(void);
STANDIN_API int cudaDeviceReset(void);
STANDIN_API int cudaGetLastError(void);
STANDIN_API int cudaLaunchKernel(
	const void *function, dim3 grid, dim3 block, void **params, size_t shared, void *stream);

/* What nvcc's host code calls before main. */
STANDIN_API void **__cudaRegisterFatBinary(void *wrapper);
STANDIN_API void __cudaRegisterFunction(void **handle, const char *host_function,
	char *device_function, const char *name, int thread_limit, void *tid, void *bid, void *bdim,
	void *gdim, int *warp_size);
STANDIN_API void __cudaUnregisterFatBinary(void **handle);

/* What nvcc leaves in a program for each source file. */
struct fat_wrapper {
	uint32_t magic, version;
	const void *data;
	void *unused;
};
#define FAT_WRAPPER_MAGIC 0x466243b1u
#define FAT_MAGIC 0xba55ed50u
