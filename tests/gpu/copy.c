/* Opens the driver, or a copy of its file. Runs in an experiment's own process, on any thread;
 * must never be linked into anything that users run. */
#include "copy.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int driver_open(const char *path, struct driver *ret_driver)
{
	struct driver driver = {.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
	const struct {
		const char *name;
		void *to;
	} entries[] = {
		{"cuInit", &driver.init},
		{"cuDeviceGetCount", &driver.get_count},
		{"cuDevicePrimaryCtxRetain", &driver.retain},
		{"cuDevicePrimaryCtxRelease_v2", &driver.release},
		{"cuCtxSetCurrent", &driver.set_current},
		{"cuMemAlloc_v2", &driver.allocate},
		{"cuMemcpyHtoD_v2", &driver.copy_in},
		{"cuMemcpyDtoH_v2", &driver.copy_out},
	};

	if (!driver.handle || dlinfo(driver.handle, RTLD_DI_LINKMAP, &driver.map)) {
		fprintf(stderr, "cannot open %s: %s\n", path, dlerror());
		return -1;
	}
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		void *address = dlsym(driver.handle, entries[i].name);

		if (!address) {
			fprintf(stderr, "%s has no %s\n", path, entries[i].name);
			return -1;
		}
		*(void **)entries[i].to = address;
	}
	*ret_driver = driver;
	return 0;
}

int driver_open_copy(
	const char *path, struct driver *ret_driver, double *ret_copy_ms, double *ret_open_ms)
{
	const char *folder = getenv("TMPDIR");
	char name[512];
	double start = now_ms();
	off_t offset = 0;
	struct stat info;
	int from, to, rc;

	snprintf(name, sizeof(name), "%s/driver-copy-XXXXXX", folder ? folder : "/tmp");
	from = open(path, O_RDONLY | O_CLOEXEC);
	to = mkostemp(name, O_CLOEXEC);
	if (from < 0 || to < 0 || fstat(from, &info) < 0) {
		fprintf(stderr, "cannot copy %s to %s\n", path, name);
		return -1;
	}
	while (offset < info.st_size) {
		if (sendfile(to, from, &offset, (size_t)(info.st_size - offset)) <= 0) {
			fprintf(stderr, "%s: copied %ld of %ld bytes\n", name, (long)offset,
				(long)info.st_size);
			return -1;
		}
	}
	close(from);
	close(to);
	*ret_copy_ms = now_ms() - start;
	start = now_ms();
	rc = driver_open(name, ret_driver);
	*ret_open_ms = now_ms() - start;
	unlink(name);
	return rc;
}

int driver_use(struct driver *driver, const char *label)
{
	int count = -1, value = 40961, back = 0;
	unsigned long memory = 0;
	void *context = NULL;
	double times[4];
	int rc[4];

	times[0] = now_ms();
	rc[0] = driver->init(0);
	times[1] = now_ms();
	rc[1] = driver->get_count(&count);
	rc[2] = driver->retain(&context, 0);
	times[2] = now_ms();
	driver->set_current(context);
	rc[3] = driver->allocate(&memory, 4096);
	driver->copy_in(memory, &value, sizeof(value));
	driver->copy_out(&back, memory, sizeof(back));
	times[3] = now_ms();
	printf("%s: cuInit=%d (%.1f ms) count=%d(%d) retain=%d (%.1f ms) alloc=%d value %s (%.1f "
	       "ms)\n",
		label, rc[0], times[1] - times[0], count, rc[1], rc[2], times[2] - times[1], rc[3],
		back == value ? "right" : "WRONG", times[3] - times[2]);
	fflush(stdout);
	return back == value;
}
