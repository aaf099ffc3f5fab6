/* A driver of years ago: a handful of entries, no cuGetProcAddress. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned int flags);
EXPORT int cuDriverGetVersion(int *version);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuCtxGetDevice(int *device);
EXPORT int cuMemAlloc_v2(void *pointer, unsigned long size);

static int is_initialised;

int cuInit(unsigned int flags)
{
	is_initialised = 1;
	return 0;
}

int cuDriverGetVersion(int *version)
{
	*version = 6050;
	return 0;
}

int cuDeviceGetCount(int *count)
{
	*count = 1;
	return is_initialised ? 0 : 3;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return is_initialised ? 0 : 3;
}

int cuMemAlloc_v2(void *pointer, unsigned long size)
{
	return is_initialised ? 2 : 3;
}
