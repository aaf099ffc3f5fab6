/* The exported cudaSetDevice, once for each symbol version that CUDA runtimes have had; the linker
 * script cudart.map makes the versions. Runs as runtime.c says. */
#include "preload/runtime.h"

#define RUNTIME_VERSION(suffix, version)                                                           \
	CUresult set_device_##suffix(int device);                                                  \
	__attribute__((visibility("default"))) CUresult set_device_##suffix(int device)            \
	{                                                                                          \
		return runtime_set_device(device, version, __builtin_return_address(0));           \
	}                                                                                          \
	__asm__(".symver set_device_" #suffix ", cudaSetDevice@" version)

RUNTIME_VERSION(9_0, "libcudart.so.9.0");
RUNTIME_VERSION(9_1, "libcudart.so.9.1");
RUNTIME_VERSION(9_2, "libcudart.so.9.2");
RUNTIME_VERSION(10_0, "libcudart.so.10.0");
RUNTIME_VERSION(10_1, "libcudart.so.10.1");
RUNTIME_VERSION(10_2, "libcudart.so.10.2");
RUNTIME_VERSION(11_0, "libcudart.so.11.0");
RUNTIME_VERSION(12, "libcudart.so.12");
RUNTIME_VERSION(13, "libcudart.so.13");
