/* Two tiny CUDA runtimes for one test (RUNTIME_NUMBER says which): cudaSetDevice under the symbol
 * version that real ones have. It initialises the driver, so that there is something to record. */
#include <dlfcn.h>
#include <stdio.h>

int cudaSetDevice(int device);

__attribute__((visibility("default"))) int cudaSetDevice(int device)
{
	static int (*init)(unsigned int), (*retain)(void **, int);
	void *library, *context;

	if (!init) {
		library = dlopen("libcuda.so.1", RTLD_NOW);
		if (!library)
			return 35;
		init = (int (*)(unsigned int))dlsym(library, "cuInit");
		retain = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
		init(0);
	}
	printf("runtime %d: device %d, retain %d\n", RUNTIME_NUMBER, device,
		retain(&context, device));
	return 0;
}
