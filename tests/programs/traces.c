/* What a program can see of a driver that is not there, or that it did not ask for. */
#include <dlfcn.h>
#include <stdio.h>

static void open_library(const char *name)
{
	void *handle = dlopen(name, RTLD_NOW);

	if (handle)
		printf("%s opened, cuInit %s\n", name, dlsym(handle, "cuInit") ? "there" : "not");
	else
		printf("%s\n", dlerror());
}

static void look_up(const char *name)
{
	void *pointer = dlsym(RTLD_DEFAULT, name);

	printf("%s %s\n", name, pointer ? "found" : dlerror());
}

/* Weak: NULL where nobody defines it. */
int cudaSetDevice(int) __attribute__((weak));

int main(void)
{
	printf("weak cudaSetDevice %s\n", cudaSetDevice ? "found" : "not found");
	look_up("cuInit");
	look_up("cuMemAlloc_v2");
	look_up("cudaSetDevice");
	look_up("driver_slots");
	open_library("libcuda.so.1");
	open_library("libcuda.so");
	open_library("libcuda.so.1");
	look_up("cuInit");
	look_up("cudaSetDevice");
	return 0;
}
