/* loader_lock: who waits for whom when the driver starts while the loader's lock is held.
 *
 * A program of its own for a GPU machine (tools/gpu-check explore). One thread, the speculator, is
 * in cuInit or in the retain of a copy of the driver; the main thread opens a library whose
 * constructor, and so the holder of the loader's lock, waits for it, looks at it or gets away from
 * it. A watchdog prints every thread's stack where a stage takes longer than 2 s.
 *
 * Usage: loader_lock DRIVER CONSTRUCTOR-LIBRARY MODE [redirect] [first] [warm]
 *   native         the constructor itself uses the driver, nobody else does
 *   init, retain   the constructor waits up to 4 s for the speculator's cuInit or retain
 *   escape-init, escape-retain
 *                  the constructor waits 0.5 s, frees the first copy's socket, opens a fresh copy
 * and uses it, whatever the speculator does redirect       the copy's loader calls get prepared
 * answers warm           libc's unwinder is loaded beforehand, as pthread_exit would load it first
 * the speculator starts 20 ms before the library is opened, not in its constructor
 */
#include "copy.h"
#include "dump.h"
#include "slots.h"

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	WAIT_LONG_MS = 4000,
	WAIT_BOUNDED_MS = 500,
	DUMP_AFTER_MS = 2000,
	LEAD_MS = 20,
	PROCESS_SECONDS = 12,
};

void in_constructor(void);

static const char *mode, *driver_path;
static int is_redirected, is_first, is_warm;
static struct driver speculated, fresh;
static void *main_handle, *driver_handle;
static volatile int may_start, is_done, init_rc = -1, retain_rc = -1;
static volatile double waiting_since;

static int has(const char *text)
{
	return strstr(mode, text) != NULL;
}

static void *prepared_dlopen(const char *file, int flags)
{
	if (!file)
		return main_handle;
	if (!strcmp(file, "libcuda.so.1"))
		return driver_handle;
	dprintf(STDOUT_FILENO, "  unprepared dlopen(%s, %d)\n", file, flags);
	return NULL;
}

static void *prepared_dlsym(void *handle, const char *name)
{
	dprintf(STDOUT_FILENO, "  unprepared dlsym(%p, %s)\n", handle, name);
	return NULL;
}

static void *prepared_dlvsym(void *handle, const char *name, const char *version)
{
	dprintf(STDOUT_FILENO, "  unprepared dlvsym(%p, %s, %s)\n", handle, name, version);
	return NULL;
}

static int prepared_dlclose(void *handle)
{
	(void)handle;
	return 0;
}

static int prepared_dladdr(const void *address, Dl_info *info)
{
	(void)info;
	dprintf(STDOUT_FILENO, "  unprepared dladdr(%p)\n", address);
	return 0;
}

static int prepared_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	dprintf(STDOUT_FILENO, "  unprepared dl_iterate_phdr(%p, %p)\n", (void *)visit, data);
	return 0;
}

static void redirect(void)
{
	main_handle = dlopen(NULL, RTLD_NOW);
	driver_handle = speculated.handle;
	printf("redirected dlopen %d, dlsym %d, dlvsym %d, dlclose %d, dladdr %d, dl_iterate_phdr "
	       "%d\n",
		slots_redirect(speculated.map, "dlopen", prepared_dlopen),
		slots_redirect(speculated.map, "dlsym", prepared_dlsym),
		slots_redirect(speculated.map, "dlvsym", prepared_dlvsym),
		slots_redirect(speculated.map, "dlclose", prepared_dlclose),
		slots_redirect(speculated.map, "dladdr", prepared_dladdr),
		slots_redirect(speculated.map, "dl_iterate_phdr", prepared_iterate));
}

/* A whole ms-grained wait that calls neither the loader nor anything that may. */
static int wait_until(volatile int *flag, int limit_ms)
{
	double start = now_ms();

	while (!*flag && now_ms() - start < limit_ms)
		usleep(500);
	return *flag;
}

static void *watchdog(void *data)
{
	(void)data;
	for (;;) {
		usleep(50 * 1000);
		if (waiting_since > 0 && now_ms() - waiting_since > DUMP_AFTER_MS) {
			waiting_since = 0;
			dump_threads();
		}
	}
	return NULL;
}

static void *speculate(void *data)
{
	double start;
	void *context;

	(void)data;
	if (has("retain"))
		init_rc = speculated.init(0);
	__atomic_store_n(&is_done, 0, __ATOMIC_SEQ_CST);
	may_start = may_start == 0 ? 1 : may_start; /* 1: ready to go */
	while (may_start != 2)
		usleep(200);
	dprintf(STDOUT_FILENO, "speculator %ld goes\n", syscall(SYS_gettid));
	start = now_ms();
	if (!has("retain"))
		init_rc = speculated.init(0);
	else
		retain_rc = speculated.retain(&context, 0);
	dprintf(STDOUT_FILENO, "speculator: %s=%d after %.1f ms\n",
		has("retain") ? "retain" : "cuInit", has("retain") ? retain_rc : init_rc,
		now_ms() - start);
	is_done = 1;
	return NULL;
}

/* The first copy's abstract socket keeps a second copy's cuInit from working (304). */
static void free_socket(void)
{
	static const char prefix[] = "cuda-uvmfd-";
	double start = now_ms();
	int freed = 0;

	for (int fd = 0; fd < 4096; fd++) {
		struct sockaddr_un address = {0};
		socklen_t length = sizeof(address);
		int event;

		if (getsockname(fd, (struct sockaddr *)&address, &length) < 0 ||
			address.sun_family != AF_UNIX ||
			memcmp(address.sun_path + 1, prefix, strlen(prefix)))
			continue;
		shutdown(fd, SHUT_RDWR);
		usleep(2000);
		event = eventfd(0, EFD_CLOEXEC);
		dup3(event, fd, O_CLOEXEC);
		close(event);
		freed++;
	}
	printf("freed %d sockets in %.2f ms\n", freed, now_ms() - start);
}

static void escape(void)
{
	double start = now_ms(), copy_ms, open_ms;

	free_socket();
	if (driver_open_copy(driver_path, &fresh, &copy_ms, &open_ms) < 0)
		return;
	printf("fresh copy: copied in %.1f ms, opened in %.1f ms\n", copy_ms, open_ms);
	fflush(stdout);
	driver_use(&fresh, "fresh copy in the constructor");
	printf("escape took %.1f ms, speculator %s\n", now_ms() - start,
		is_done ? "had come back" : "still inside");
	fflush(stdout);
}

void in_constructor(void)
{
	double start = now_ms();

	waiting_since = start;
	if (!strcmp(mode, "native")) {
		driver_use(&speculated, "in the constructor");
		waiting_since = 0;
		return;
	}
	may_start = 2;
	if (wait_until(&is_done, has("escape") ? WAIT_BOUNDED_MS : WAIT_LONG_MS))
		printf("constructor: speculator came back after %.1f ms: it does not need the "
		       "lock\n",
			now_ms() - start);
	else
		printf("constructor: speculator still inside after %.1f ms\n", now_ms() - start);
	fflush(stdout);
	if (has("escape"))
		escape();
	waiting_since = 0;
}

static void *leave(void *data)
{
	(void)data;
	pthread_exit(NULL);
}

static void warm(void)
{
	void *frames[4];
	pthread_t thread;

	backtrace(frames, 4);
	if (!pthread_create(&thread, NULL, leave, NULL))
		pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	double copy_ms, open_ms, start;
	pthread_t thread, dog;

	for (int i = 4; i < argc; i++) {
		is_redirected |= !strcmp(argv[i], "redirect");
		is_first |= !strcmp(argv[i], "first");
		is_warm |= !strcmp(argv[i], "warm");
	}
	if (argc < 4) {
		fprintf(stderr,
			"usage: loader_lock DRIVER LIBRARY MODE [redirect] [first] [warm]\n");
		return 2;
	}
	driver_path = argv[1];
	mode = argv[3];
	alarm(PROCESS_SECONDS);
	dump_prepare();
	printf("== %s%s%s%s\n", mode, is_redirected ? " redirect" : "", is_first ? " first" : "",
		is_warm ? " warm" : "");
	if (is_warm)
		warm();
	if (driver_open_copy(driver_path, &speculated, &copy_ms, &open_ms) < 0)
		return 1;
	if (is_redirected)
		redirect();
	fflush(stdout);
	pthread_create(&dog, NULL, watchdog, NULL);
	if (strcmp(mode, "native")) {
		pthread_create(&thread, NULL, speculate, NULL);
		while (may_start != 1)
			usleep(200);
	}
	if (is_first) {
		may_start = 2;
		usleep(LEAD_MS * 1000);
	}
	start = now_ms();
	if (!dlopen(argv[2], RTLD_NOW)) {
		fprintf(stderr, "cannot open %s: %s\n", argv[2], dlerror());
		return 1;
	}
	printf("dlopen of the library took %.1f ms\n", now_ms() - start);
	fflush(stdout);
	if (!strcmp(mode, "native"))
		return 0;
	waiting_since = now_ms();
	if (!wait_until(&is_done, WAIT_LONG_MS)) {
		printf("speculator still inside %d ms after the lock was free\n", WAIT_LONG_MS);
		fflush(stdout);
		_exit(3);
	}
	waiting_since = 0;
	pthread_join(thread, NULL);
	printf("at the end: cuInit=%d retain=%d\n", init_rc, retain_rc);
	fflush(stdout);
	if (fresh.handle)
		return driver_use(&fresh, "fresh copy again, from main") ? 0 : 4;
	return 0;
}
