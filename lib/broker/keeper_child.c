/* The keeper process. One thread of ours (the driver makes its own); no Hearth is preloaded in it
 * and its environment is clean. It holds the driver's state by being there; it must never make a
 * context where that would keep others from making theirs. */
#include "broker/keeper_child.h"

#include "base/clock.h"
#include "base/env.h"
#include "base/socket.h"
#include "driver/locate.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define LOOK_MS 5000              /* between looks at the devices while contexts are held */
#define ATTRIBUTE_COMPUTE_MODE 20 /* CU_DEVICE_ATTRIBUTE_COMPUTE_MODE */
#define MODE_DEFAULT 0            /* CU_COMPUTEMODE_DEFAULT */
#define UVM_USERS "/sys/module/nvidia_uvm/refcnt"
/* A cuInit that finds the GPUs up takes 9 ms for one and 37 for two, one that does not over 100 for
 * each (measured on H200): this, once and for each GPU, lies between. */
#define WARM_INIT_US 25000

/* The entries the keeper calls (CUDA Driver API); CUresult and CUdevice are int. */
struct driver {
	int (*init)(unsigned int flags);
	int (*driver_get_version)(int *version);
	int (*device_get_count)(int *count);
	int (*device_get)(int *device, int ordinal);
	int (*device_get_name)(char *name, int length, int device);
	int (*device_get_uuid)(uint8_t *uuid, int device);
	int (*device_total_mem)(size_t *bytes, int device);
	int (*device_get_attribute)(int *value, int attribute, int device);
	int (*device_get_pci_bus_id)(char *id, int length, int device);
	int (*primary_retain)(void **context, int device);
	int (*primary_release)(int device);
	int (*ctx_push)(void *context);
	int (*ctx_pop)(void **context);
	int (*ctx_synchronize)(void);
};

static const struct {
	const char *name;
	size_t offset;
} entries[] = {
	{"cuInit", offsetof(struct driver, init)},
	{"cuDriverGetVersion", offsetof(struct driver, driver_get_version)},
	{"cuDeviceGetCount", offsetof(struct driver, device_get_count)},
	{"cuDeviceGet", offsetof(struct driver, device_get)},
	{"cuDeviceGetName", offsetof(struct driver, device_get_name)},
	{"cuDeviceGetUuid", offsetof(struct driver, device_get_uuid)},
	{"cuDeviceTotalMem_v2", offsetof(struct driver, device_total_mem)},
	{"cuDeviceGetAttribute", offsetof(struct driver, device_get_attribute)},
	{"cuDeviceGetPCIBusId", offsetof(struct driver, device_get_pci_bus_id)},
	{"cuDevicePrimaryCtxRetain", offsetof(struct driver, primary_retain)},
	{"cuDevicePrimaryCtxRelease_v2", offsetof(struct driver, primary_release)},
	{"cuCtxPushCurrent_v2", offsetof(struct driver, ctx_push)},
	{"cuCtxPopCurrent_v2", offsetof(struct driver, ctx_pop)},
	{"cuCtxSynchronize", offsetof(struct driver, ctx_synchronize)},
};

static int open_driver(struct driver *ret_driver, char ret_path[PATH_MAX])
{
	const struct locate_request request = {.driver = env_get(ENV_HEARTH_DRIVER)};
	void *handle;

	if (locate_driver(&request, ret_path))
		return -ENOENT;
	handle = dlopen(ret_path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *entry = dlsym(handle, entries[i].name);

		if (!entry)
			return -ENOENT;
		memcpy((char *)ret_driver + entries[i].offset, &entry, sizeof(entry));
	}
	return 0;
}

/* Whether the GPU's state was down before: nvidia-uvm counts its open files. Where there is no such
 * count (other kernels, the simulated driver) nobody else is assumed. */
static bool is_cold(void)
{
	char text[16] = "";
	int fd = open(UVM_USERS, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return true;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return atoi(text) == 0;
}

static int describe(const struct driver *driver, int ordinal, struct hearth_device *ret_device)
{
	struct hearth_device described = {0};
	int device, mode = MODE_DEFAULT;
	size_t memory = 0;
	int rc = driver->device_get(&device, ordinal);

	if (rc)
		return rc;
	driver->device_get_name(described.name, sizeof(described.name), device);
	driver->device_get_uuid(described.uuid, device);
	driver->device_total_mem(&memory, device);
	driver->device_get_attribute(&mode, ATTRIBUTE_COMPUTE_MODE, device);
	driver->device_get_pci_bus_id(described.pci, sizeof(described.pci), device);
	described.name[sizeof(described.name) - 1] = 0;
	described.pci[sizeof(described.pci) - 1] = 0;
	described.memory = memory;
	described.compute_mode = (uint32_t)mode;
	described.has_context = ret_device->has_context;
	*ret_device = described;
	return 0;
}

/* Holds a context where that is asked for and hinders nobody: a context of ours on a device in
 * EXCLUSIVE_PROCESS mode would be the only one there may be. */
static int hold_context(
	const struct driver *driver, int ordinal, struct hearth_device *device, void **context)
{
	bool may_hold = device->compute_mode == MODE_DEFAULT;
	int rc = 0, handle;

	if (may_hold == (*context != NULL) || driver->device_get(&handle, ordinal))
		return 0;
	if (may_hold) {
		rc = driver->primary_retain(context, handle);
	} else {
		rc = driver->primary_release(handle);
		*context = NULL;
	}
	device->has_context = *context != NULL;
	return rc;
}

/* A lost device or a broken context shows in a synchronize, which does not wake a GPU that idles.
 */
static int check_context(const struct driver *driver, void *context)
{
	void *popped;
	int rc;

	if (!context)
		return 0;
	rc = driver->ctx_push(context);
	if (rc)
		return rc;
	rc = driver->ctx_synchronize();
	driver->ctx_pop(&popped);
	return rc;
}

/* One look at every device. */
static int look(const struct driver *driver, enum hearth_retain retain,
	struct keeper_report *report, void *contexts[HEARTH_MAX_DEVICES])
{
	int count = 0, rc = driver->device_get_count(&count);

	if (rc)
		return rc;
	if (count > (int)HEARTH_MAX_DEVICES)
		count = (int)HEARTH_MAX_DEVICES;
	report->device_count = (uint32_t)count;
	for (int i = 0; i < count; i++) {
		struct hearth_device *device = &report->devices[i];

		rc = describe(driver, i, device);
		if (!rc && retain == HEARTH_RETAIN_CONTEXT)
			rc = hold_context(driver, i, device, &contexts[i]);
		if (!rc)
			rc = check_context(driver, contexts[i]);
		if (rc)
			return rc;
	}
	return 0;
}

static int start(const struct driver *driver, struct keeper_report *report)
{
	uint64_t before_us;
	int version = 0, count = 0;

	report->was_cold = is_cold();
	before_us = clock_monotonic_us();
	report->rc = driver->init(0);
	report->init_us = clock_monotonic_us() - before_us;
	/* A program that began just before us was using the GPU, but both of us have waited for it.
	 */
	if (!report->rc && !driver->device_get_count(&count) &&
		report->init_us > WARM_INIT_US * (1 + (uint64_t)count))
		report->was_cold = true;
	driver->driver_get_version(&version);
	report->driver_version = (uint32_t)version;
	return report->rc;
}

static bool say(const struct keeper_report *report)
{
	return !socket_send(KEEPER_FD, report, sizeof(*report), NULL, 0);
}

int keeper_child_main(enum hearth_retain retain)
{
	static struct keeper_report report = {.magic = KEEPER_REPORT_MAGIC}, said;
	static void *contexts[HEARTH_MAX_DEVICES];
	struct pollfd channel = {.fd = KEEPER_FD, .events = POLLIN};
	struct driver driver = {0};

	prctl(PR_SET_NAME, "hearthd-keeper");
	/* Should the broker die while the driver is busy here. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (fcntl(KEEPER_FD, F_SETFD, FD_CLOEXEC) < 0)
		return EXIT_FAILURE;
	if (open_driver(&driver, report.driver_path)) {
		report.rc = KEEPER_NO_DRIVER;
		say(&report);
		return EXIT_FAILURE;
	}
	if (!start(&driver, &report))
		report.rc = look(&driver, retain, &report, contexts);
	for (;;) {
		if (memcmp(&said, &report, sizeof(report)) && !say(&report))
			return EXIT_FAILURE;
		if (report.rc)
			return EXIT_FAILURE;
		said = report;
		if (poll(&channel, 1, retain == HEARTH_RETAIN_CONTEXT ? LOOK_MS : -1) > 0)
			return EXIT_SUCCESS;
		report.rc = look(&driver, retain, &report, contexts);
	}
}
