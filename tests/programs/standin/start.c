/* Start of the stand-in runtime: lookups and first calls as libcudart 13.0 makes them. Runs on the
 * thread of the program's first runtime call, once. */
#include "start.h"

#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#define STUB_LIBRARY 34
#define OLDEST_DRIVER 13000
#define ATTRIBUTES 111
#define MAX_DEVICES 16

typedef int get_proc(const char *name, void **ret_entry, int version, uint64_t flags, int *status);

static const struct {
	const char *name;
	int version;
	uint64_t flags;
	const char *symbol;
} requests[] = {
#define REQUEST(name, version, flags, symbol) {name, version, flags, symbol},
#include "standin_requests.h"
#undef REQUEST
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static void *entries[REQUESTS];
static int outcome, device_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void *start_entry(const char *name, int version)
{
	for (size_t i = 0; i < REQUESTS; i++)
		if (requests[i].version == version && !requests[i].flags &&
			!strcmp(requests[i].name, name))
			return entries[i];
	return NULL;
}

int start_call(void *entry, const uintptr_t w[12])
{
	int (*call)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
		uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);

	if (!entry)
		return cudaErrorCallRequiresNewerDriver;
	*(void **)&call = entry;
	return call(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]);
}

/* The first three through the pointer that dlsym gave, the rest through the one they brought. */
static void look_up(get_proc *first)
{
	get_proc *ask = first;

	for (size_t i = 0; i < REQUESTS; i++) {
		if (i == 3 && entries[2])
			*(void **)&ask = entries[2];
		if (ask(requests[i].name, &entries[i], requests[i].version, requests[i].flags,
			    NULL))
			entries[i] = NULL;
	}
}

/* A driver without cuGetProcAddress_v2, or a stub: plain names. */
static void look_up_names(void *driver)
{
	for (size_t i = 0; i < REQUESTS; i++)
		entries[i] = dlsym(driver, requests[i].symbol);
}

static void ask_device(int ordinal)
{
	unsigned char uuid[16];
	char name[256];
	size_t total;
	int device, value;

	DRIVER(cuDeviceGet, 2000, (uintptr_t)&device, (uintptr_t)ordinal);
	DRIVER(cuDeviceGetName, 2000, (uintptr_t)name, sizeof(name), (uintptr_t)device);
	DRIVER(cuDeviceTotalMem, 3020, (uintptr_t)&total, (uintptr_t)device);
	for (int i = 1; i <= ATTRIBUTES; i++)
		DRIVER(cuDeviceGetAttribute, 2000, (uintptr_t)&value, (uintptr_t)i,
			(uintptr_t)device);
	DRIVER(cuDeviceGetUuid, 9020, (uintptr_t)uuid, (uintptr_t)device);
}

static void start(void)
{
	static const unsigned char table[16] = {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e,
		0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9};
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *none = NULL;
	int version = 0, mode;
	get_proc *first;

	outcome = cudaErrorInsufficientDriver;
	if (!driver)
		return;
	*(void **)&first = dlsym(driver, "cuGetProcAddress_v2");
	if (!first || first("", &none, 0, 0, NULL) == STUB_LIBRARY)
		look_up_names(driver);
	else
		look_up(first);
	DRIVER(cuGetExportTable, 3000, (uintptr_t)&none, (uintptr_t)table);
	if (DRIVER(cuDriverGetVersion, 2020, (uintptr_t)&version) || version < OLDEST_DRIVER)
		return;
	outcome = DRIVER(cuInit, 2000, 0);
	if (outcome)
		return;
	DRIVER(cuModuleGetLoadingMode, 11070, (uintptr_t)&mode);
	outcome = DRIVER(cuDeviceGetCount, 2000, (uintptr_t)&device_count);
	for (int i = 0; !outcome && i < device_count && i < MAX_DEVICES; i++)
		ask_device(i);
}

int start_driver(void)
{
	pthread_once(&once, start);
	return outcome;
}

int start_device_count(void)
{
	return device_count;
}
