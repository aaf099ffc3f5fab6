/* Rules of starting and ending: cuInit, the environment, fork, a second copy, exit. */
#include "rules.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_DEVICES 16

/* Entries called as a program would call them, before it has called cuInit. */
void rules_before(void)
{
	word out = 0, context = 0;
	int number = 0, mode = 2;

	SHOW("", cuDriverGetVersion, W(&number));
	printf("version is 13000 or more: %d\n", number >= 13000);
	SHOW("", cuDeviceGetCount, W(&number));
	SHOW("", cuDeviceGet, W(&number), 0);
	SHOW("", cuDevicePrimaryCtxRetain, W(&context), 0);
	SHOW("", cuDevicePrimaryCtxGetState, 0, W(&out), W(&number));
	SHOW("", cuDevicePrimaryCtxRelease_v2, 0);
	SHOW("", cuCtxCreate_v2, W(&context), 0, 0);
	SHOW("", cuCtxGetCurrent, W(&context));
	SHOW("0", cuCtxSetCurrent, 0);
	SHOW("", cuCtxPopCurrent_v2, W(&context));
	SHOW("", cuCtxGetDevice, W(&number));
	SHOW("", cuCtxSynchronize, 0);
	SHOW("", cuMemAlloc_v2, W(&out), 64);
	SHOW("", cuMemAllocManaged, W(&out), 64, 1);
	SHOW("", cuMemFree_v2, 0);
	SHOW("", cuMemGetInfo_v2, W(&out), W(&context));
	SHOW("", cuMemHostAlloc, W(&out), 64, 0);
	SHOW("", cuModuleLoadData, W(&out), W("//"));
	SHOW("", cuLibraryLoadData, W(&out), W("//"), 0, 0, 0, 0, 0, 0);
	SHOW("", cuModuleGetLoadingMode, W(&number));
	SHOW("", cuStreamCreate, W(&out), 0);
	SHOW("", cuStreamCreateWithPriority, W(&out), 1, 0);
	SHOW("", cuStreamSynchronize, 0);
	SHOW("", cuEventCreate, W(&out), 0);
	SHOW("", cuThreadExchangeStreamCaptureMode, W(&mode));
	SHOW("", cuLaunchKernel, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	SHOW("", cuPointerGetAttribute, W(&out), 2, W(&out));
	SHOW("", cuGraphCreate, W(&out), 0);
}

void rules_init(void)
{
	int count = -1;

	SHOW("flags 1", cuInit, 1);
	SHOW("after a wrong one", cuDeviceGetCount, W(&count));
	SHOW("", cuInit, 0);
	SHOW("again", cuInit, 0);
	SHOW("flags 1 afterwards", cuInit, 1);
	SHOW("", cuDeviceGetCount, W(&count));
	SHOW("nowhere", cuDeviceGetCount, 0);
	SHOW("nowhere", cuDriverGetVersion, 0);
}

/* Bus ids of all devices, in the driver's order. */
static int read_buses(char ids[MAX_DEVICES][32])
{
	int count = 0;

	CALL(cuDeviceGetCount, W(&count));
	for (int i = 0; i < count && i < MAX_DEVICES; i++)
		CALL(cuDeviceGetPCIBusId, W(ids[i]), 32, W(i));
	return count;
}

struct all {
	char buses[MAX_DEVICES][32];
	unsigned char uuids[MAX_DEVICES][16];
	int count;
};

static void uuid_text(const unsigned char *uuid, char *ret_text)
{
	ret_text += sprintf(ret_text, "GPU-");
	for (int i = 0; i < 16; i++)
		ret_text += sprintf(ret_text, "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

static void child(
	void (*run)(const struct all *, const char *), const struct all *all, const char *value)
{
	fflush(stdout);
	if (!fork()) {
		run(all, value);
		fflush(stdout);
		_exit(0);
	}
	wait(NULL);
}

/* Prints which of all GPUs are seen, by their place among them. */
static void see(const struct all *all, const char *value)
{
	char buses[MAX_DEVICES][32];
	int rc, count;

	setenv("CUDA_VISIBLE_DEVICES", value, 1);
	rc = CALL(cuInit, 0);
	printf(" -> %d:", rc);
	count = rc ? 0 : read_buses(buses);
	for (int i = 0; i < count; i++)
		for (int j = 0; j < all->count; j++)
			if (!strcmp(buses[i], all->buses[j]))
				printf(" %d", j);
	printf("\n");
}

static void look(const struct all *all, const char *text, const char *value)
{
	printf("[%s]", text);
	child(see, all, value);
}

static void look_around(const struct all *unused, const char *shared)
{
	struct all *all = (struct all *)shared;

	unsetenv("CUDA_VISIBLE_DEVICES");
	CALL(cuInit, 0);
	all->count = read_buses(all->buses);
	for (int i = 0; i < all->count; i++)
		CALL(cuDeviceGetUuid_v2, W(all->uuids[i]), W(i));
}

void rules_visible(void)
{
	static const char *const values[] = {"", "0", "1", "0,1", "1,0", "-1", "0,-1", "-1,0",
		"0,0", "1,1", "0,1,0", "0,7", "7", "7,0", "0,7,1", " 0", "0 ", " 0 , 1 ", "0 1",
		"0;1", "0,", ",0", ",", "0,,1", "+0", "00", "01", "0x0", "0x1", "0abc", "1abc",
		"abc", "0,abc", "0.5", "1e0", "-0", "--0", "4294967296", "99999999999999999999",
		"GPU-", "GPU", "MIG-", "all", "none", "void", "NoDevFiles", "\t0", "\n1", "0\n"};
	struct all *all =
		mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char text[64], list[160], other[64];

	child(look_around, all, (const char *)all);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		look(all, values[i], values[i]);
	uuid_text(all->uuids[0], text);
	look(all, "UUID", text);
	for (size_t cut = 5; cut < 14; cut += 2) {
		snprintf(list, sizeof(list), "%.*s", (int)cut, text);
		snprintf(other, sizeof(other), "%zu characters of it", cut);
		look(all, other, list);
	}
	snprintf(list, sizeof(list), "%s0", text);
	look(all, "UUID and a character more", list);
	snprintf(list, sizeof(list), " %s", text);
	look(all, "space and UUID", list);
	snprintf(list, sizeof(list), "%s ", text);
	look(all, "UUID and space", list);
	snprintf(list, sizeof(list), "gpu-%s", text + 4);
	look(all, "UUID with gpu-", list);
	for (char *c = strcpy(list, text); *c; c++)
		if (*c >= 'a' && *c <= 'f')
			*c = (char)(*c - 'a' + 'A');
	look(all, "UUID in capitals", list);
	snprintf(list, sizeof(list), "%s,%s", text, text);
	look(all, "UUID twice", list);
	snprintf(list, sizeof(list), "0,%s", text);
	look(all, "0 and UUID of 0", list);
	uuid_text(all->uuids[all->count > 1], text);
	snprintf(list, sizeof(list), "%s,0", text);
	look(all, "UUID of 1, then 0", list);
	snprintf(list, sizeof(list), "0,%s", text);
	look(all, "0, then UUID of 1", list);
	snprintf(list, sizeof(list), "%s,abc", text);
	look(all, "UUID of 1, then abc", list);
}

static int count_now(void)
{
	int count = -1, rc = CALL(cuDeviceGetCount, W(&count));

	return rc ? -rc : count;
}

/* When the environment is read, and whether a failure stays. */
void rules_late(void)
{
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	SHOW("none visible", cuInit, 0);
	printf("count %d\n", count_now());
	SHOW("none visible, again", cuInit, 0);
	setenv("CUDA_VISIBLE_DEVICES", "0", 1);
	SHOW("after a change", cuInit, 0);
	printf("count %d\n", count_now());
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	SHOW("after another change", cuInit, 0);
	printf("count %d\n", count_now());
}

void rules_fork(void)
{
	word out;
	int number;

	rules_context();
	fflush(stdout);
	if (!fork()) {
		SHOW("in a child", cuInit, 0);
		SHOW("in a child", cuDriverGetVersion, W(&number));
		SHOW("in a child", cuDeviceGetCount, W(&number));
		SHOW("in a child", cuCtxGetCurrent, W(&out));
		SHOW("in a child", cuCtxSetCurrent, 0);
		SHOW("in a child", cuMemAlloc_v2, W(&out), 64);
		SHOW("in a child", cuCtxSynchronize, 0);
		SHOW("in a child", cuDevicePrimaryCtxRetain, W(&out), 0);
		SHOW("in a child", cuDevicePrimaryCtxRelease_v2, 0);
		SHOW("in a child", cuGetErrorName, 2, W(&out));
		SHOW("in a child", cuGetProcAddress_v2, W("cuInit"), W(&out), 13000, 0, 0);
		SHOW("in a child", cuModuleGetLoadingMode, W(&number));
		exit(0);
	}
	wait(NULL);
	SHOW("in the parent", cuMemAlloc_v2, W(&out), 64);
}

/* A second copy of the driver's file in one process. */
void rules_copy(void)
{
	int (*init)(unsigned int), from, to;
	char path[] = "/tmp/driver-rules-XXXXXX";
	struct link_map *map;
	struct stat status;
	Dl_info info;
	void *copy;

	rules_context();
	dladdr(rules_entry("cuInit"), &info);
	from = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
	to = mkstemp(path);
	fstat(from, &status);
	for (off_t left = status.st_size; left > 0;) {
		ssize_t sent = sendfile(to, from, NULL, (size_t)left);

		if (sent <= 0)
			break;
		left -= sent;
	}
	copy = dlopen(path, RTLD_NOW);
	unlink(path);
	if (!copy || dlinfo(copy, RTLD_DI_LINKMAP, &map)) {
		printf("no copy: %s\n", dlerror());
		return;
	}
	*(void **)&init = dlsym(copy, "cuInit");
	printf("second copy's cuInit: %d\n", init(0));
	printf("again: %d\n", init(0));
	SHOW("the first copy", cuCtxSynchronize, 0);
}

static void at_exit_before(void)
{
	const char *name;
	int number;

	SHOW("at exit, registered before cuInit", cuDeviceGetCount, W(&number));
	SHOW("at exit, registered before cuInit", cuDriverGetVersion, W(&number));
	SHOW("at exit, registered before cuInit", cuCtxSynchronize, 0);
	SHOW("at exit, registered before cuInit", cuDevicePrimaryCtxRelease_v2, 0);
	SHOW("at exit, registered before cuInit", cuInit, 0);
	SHOW("at exit, registered before cuInit", cuGetErrorName, 2, W(&name));
	SHOW("at exit, registered before cuInit", cuGetProcAddress_v2, W("cuInit"), W(&name), 13000,
		0, 0);
	SHOW("at exit, registered before cuInit", cuCtxGetCurrent, W(&name));
}

static void at_exit_after(void)
{
	SHOW("at exit, registered after cuInit", cuCtxSynchronize, 0);
}

void rules_exit(void)
{
	rules_entry("cuInit");
	atexit(at_exit_before);
	rules_context();
	atexit(at_exit_after);
}
