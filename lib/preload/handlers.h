/* The hand-written handlers: one for each row of class `handle` in the driver's spec, called in the
 * entry's own ABI. The generated table of stubs names them all. Pointers that Hearth does not look
 * at are machine words. */
#pragma once

#include "driver/abi.h"

#include <stddef.h>
#include <stdint.h>

/* init.c */
CUresult handle_cuInit(unsigned int flags);

/* lookup.c */
CUresult handle_cuGetProcAddress(const char *symbol, void **pointer, int version, uint64_t flags);
CUresult handle_cuGetProcAddress_v2(
	const char *symbol, void **pointer, int version, uint64_t flags, int *status);
CUresult handle_cuGetExportTable(const void **table, const void *uuid);

/* context.c */
CUresult handle_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult handle_cuDevicePrimaryCtxRelease(CUdevice device);
CUresult handle_cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult handle_cuDevicePrimaryCtxReset(CUdevice device);
CUresult handle_cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult handle_cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags);
CUresult handle_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags);
CUresult handle_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *is_active);
CUresult handle_cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device);
CUresult handle_cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult handle_cuCtxCreate_v3(CUcontext *context, const void *affinities, int affinity_count,
	unsigned int flags, CUdevice device);
CUresult handle_cuCtxCreate_v4(
	CUcontext *context, const void *parameters, unsigned int flags, CUdevice device);
CUresult handle_cuCtxSetCurrent(CUcontext context);
CUresult handle_cuCtxDestroy(CUcontext context);
CUresult handle_cuCtxDestroy_v2(CUcontext context);

/* limit.c */
CUresult handle_cuCtxSetLimit(int limit, size_t value);

/* library.c */
CUresult handle_cuModuleLoad(CUmodule *module, const char *path);
CUresult handle_cuModuleLoadData(CUmodule *module, const void *image);
CUresult handle_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int option_count,
	const void *options, const void *values);
CUresult handle_cuModuleLoadFatBinary(CUmodule *module, const void *image);
CUresult handle_cuLibraryLoadData(CUlibrary *library, const void *image, const void *jit_options,
	const void *jit_values, unsigned int jit_count, const void *options, const void *values,
	unsigned int count);
CUresult handle_cuLibraryUnload(CUlibrary library);
CUresult handle_cuLibraryLoadFromFile(CUlibrary *library, const char *path, const void *jit_options,
	const void *jit_values, unsigned int jit_count, const void *options, const void *values,
	unsigned int count);

/* kernel.c */
CUresult handle_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
CUresult handle_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult handle_cuKernelGetFunction(CUfunction *function, CUkernel kernel);
