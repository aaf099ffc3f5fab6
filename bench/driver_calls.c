/* Finds driver entries for a bench. */
#include "driver_calls.h"

#include "measure.h"

#include <dlfcn.h>

void driver_calls_open(const char *path, struct driver_calls *ret_calls)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	struct driver_calls calls;
	const struct {
		const char *name;
		void *to;
	} entries[] = {
		{"cuInit", &calls.init},
		{"cuDevicePrimaryCtxRetain", &calls.retain},
		{"cuCtxSetCurrent", &calls.set_current},
		{"cuCtxGetCurrent", &calls.get_current},
		{"cuMemAlloc_v2", &calls.allocate},
		{"cuMemcpyHtoD_v2", &calls.copy_in},
		{"cuModuleLoadData", &calls.module_load},
		{"cuModuleGetFunction", &calls.get_function},
		{"cuLaunchKernel", &calls.launch},
		{"cuCtxSynchronize", &calls.synchronize},
	};

	if (!library)
		measure_die("cannot open %s: %s", path, dlerror());
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *address = dlsym(library, entries[i].name);

		if (!address)
			measure_die("%s has no %s", path, entries[i].name);
		*(void **)entries[i].to = address;
	}
	*ret_calls = calls;
}
