/* A library that uses the driver as soon as it is loaded, under the loader's lock; with WAIT_MS it
 * holds that lock for a while first. */
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

#ifndef WAIT_MS
#define WAIT_MS 0
#endif

__attribute__((constructor)) static void start(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned int), (*retain)(void **, int);
	void *context = NULL;
	int rc;

	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000}, NULL);
	rc = init(0);
	printf("constructor: cuInit %d, retain %d\n", rc, retain(&context, 0));
	fflush(stdout);
}
