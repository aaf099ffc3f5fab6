/* Does what its arguments say, one step after the other, and prints a JSON line for each: what it
 * answered and how long it took. For tools/gpu-check mps; links with nothing of CUDA.
 *
 *   sleep=MS init context kernel
 *   length=N blocks=N   of the kernel, from here on
 *   enabled     whether it is a client of MPS (device attribute 133)
 *   free        free memory, MiB
 *   hold        waits for a byte of stdin, or its end
 *   loop=MS     launches a small kernel and waits for it, again and again: how often
 *   alloc=N     N times 256 MiB, until there is no more: how many
 *
 * The first line, `load`, is of the driver's file. MPS_CLIENT_IMAGE is the file of the kernel
 * `spin`, MPS_CLIENT_LENGTH its parameter. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIECE ((size_t)256 << 20)
#define MPS_ENABLED 133

typedef unsigned long long address;

typedef int launch_entry(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
	unsigned, void *, void **, void **);

static void *driver, *context, *function;
static char image[8192];
static unsigned length, blocks = 1;
/* Looked up once, as programs do. */
static launch_entry *launch_kernel;
static int (*synchronize)(void);

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void *entry(const char *name)
{
	void *found = driver ? dlsym(driver, name) : NULL;

	if (!found) {
		fprintf(stderr, "no %s\n", name);
		exit(9);
	}
	return found;
}

#define CALL(name, types, ...) ((int(*) types)entry(#name))(__VA_ARGS__)

static void tell(const char *step, double since_ms, int rc, long value)
{
	double end_ms = now_ms();

	printf("{\"step\":\"%s\",\"ms\":%.3f,\"rc\":%d,\"value\":%ld}\n", step, end_ms - since_ms,
		rc, value);
	fflush(stdout);
}

static int launch(void)
{
	void *parameters[] = {&length};
	int rc = launch_kernel(function, blocks, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL);

	return rc ? rc : synchronize();
}

static int load(void)
{
	FILE *file = fopen(getenv("MPS_CLIENT_IMAGE"), "r");
	void *module = NULL;
	int rc;

	if (!file || !fread(image, 1, sizeof(image) - 1, file))
		exit(8);
	fclose(file);
	launch_kernel = (launch_entry *)entry("cuLaunchKernel");
	synchronize = (int (*)(void))entry("cuCtxSynchronize");
	rc = CALL(cuModuleLoadData, (void **, const void *), &module, image);
	return rc ? rc
		  : CALL(cuModuleGetFunction, (void **, void *, const char *), &function, module,
			    "spin");
}

static void loop(double limit_ms)
{
	double begin_ms = now_ms();
	long count = 0;
	int rc = 0;

	while (!rc && now_ms() - begin_ms < limit_ms) {
		rc = launch();
		count += !rc;
	}
	tell("loop", begin_ms, rc, count);
}

static void allocate(int most)
{
	double begin_ms = now_ms();
	address piece;
	int got = 0, rc = 0;

	while (got < most && !(rc = CALL(cuMemAlloc_v2, (address *, size_t), &piece, PIECE)))
		got++;
	tell("alloc", begin_ms, rc, got);
}

static void take(const char *step, double value)
{
	double begin_ms = now_ms();
	size_t free_bytes = 0, total = 0;
	int is_enabled = -1, rc;
	char byte;

	if (!strcmp(step, "sleep")) {
		usleep((useconds_t)(value * 1000));
	} else if (!strcmp(step, "length")) {
		length = (unsigned)value;
	} else if (!strcmp(step, "blocks")) {
		blocks = (unsigned)value;
	} else if (!strcmp(step, "init")) {
		rc = CALL(cuInit, (unsigned), 0);
		tell(step, begin_ms, rc, 0);
	} else if (!strcmp(step, "context")) {
		rc = CALL(cuDevicePrimaryCtxRetain, (void **, int), &context, 0);
		tell(step, begin_ms, rc, 0);
		if (!rc)
			CALL(cuCtxSetCurrent, (void *), context);
	} else if (!strcmp(step, "kernel")) {
		rc = load();
		rc = rc ? rc : launch();
		tell(step, begin_ms, rc, 0);
	} else if (!strcmp(step, "enabled")) {
		rc = CALL(cuDeviceGetAttribute, (int *, int, int), &is_enabled, MPS_ENABLED, 0);
		tell(step, begin_ms, rc, is_enabled);
	} else if (!strcmp(step, "free")) {
		rc = CALL(cuMemGetInfo_v2, (size_t *, size_t *), &free_bytes, &total);
		tell(step, begin_ms, rc, (long)(free_bytes >> 20));
	} else if (!strcmp(step, "hold")) {
		tell(step, begin_ms, 0, 0);
		if (read(STDIN_FILENO, &byte, 1) < 0)
			exit(7);
	} else if (!strcmp(step, "loop")) {
		loop(value);
	} else if (!strcmp(step, "alloc")) {
		allocate((int)value);
	} else {
		exit(2);
	}
}

int main(int count, char **words)
{
	double begin_ms = now_ms();

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	tell("load", begin_ms, !driver, 0);
	length = (unsigned)atoi(getenv("MPS_CLIENT_LENGTH"));
	for (int i = 1; i < count; i++) {
		char *equals = strchr(words[i], '=');

		if (equals)
			*equals = '\0';
		take(words[i], equals ? atof(equals + 1) : 0);
	}
	return 0;
}
