/* A program that uses the driver API the plain way: init, context, memory, copy, launch, result.
 * Prints the same lines each time. Works on the simulated driver only, whose image format it uses.
 *
 *   simple_driver [init|retain|create|work] [after=MS] [device=N] [rounds=N] [hold]
 *
 * How far to go (default work); what to wait before the first call; hold: when done, print "ready"
 * and wait for the end of standard input before leaving. */
#include "driver_calls.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT 1024
#define FILLED 40u
#define FACTOR 2u

static const char image[] = "SIMCUDA1\nkernel fill fill\nkernel add add\nkernel scale scale\n";

static void launch(function_t function, void **params)
{
	CHECK(cuLaunchKernel(function, 1, 1, 1, COUNT, 1, 1, 0, NULL, params, NULL));
}

/* (host[i] + 40) * 2, on the device. */
static void work(void)
{
	uint32_t host[COUNT], value = FILLED, factor = FACTOR, count = COUNT;
	pointer_t numbers, filled;
	function_t fill, add, scale;
	module_t module;

	CHECK(cuMemAlloc_v2(&numbers, sizeof(host)));
	CHECK(cuMemAlloc_v2(&filled, sizeof(host)));
	for (uint32_t i = 0; i < COUNT; i++)
		host[i] = i;
	CHECK(cuMemcpyHtoD_v2(numbers, host, sizeof(host)));
	CHECK(cuModuleLoadData(&module, image));
	CHECK(cuModuleGetFunction(&fill, module, "fill"));
	CHECK(cuModuleGetFunction(&add, module, "add"));
	CHECK(cuModuleGetFunction(&scale, module, "scale"));
	launch(fill, (void *[]){&filled, &value, &count});
	launch(add, (void *[]){&numbers, &numbers, &filled, &count});
	launch(scale, (void *[]){&numbers, &numbers, &factor, &count});
	memset(host, 0, sizeof(host));
	CHECK(cuMemcpyDtoH_v2(host, numbers, sizeof(host)));
	CHECK(cuCtxSynchronize());
	for (uint32_t i = 0; i < COUNT; i++)
		if (host[i] != (i + FILLED) * FACTOR) {
			printf("wrong at %u: %u\n", i, host[i]);
			exit(1);
		}
	printf("result right\n");
	CHECK(cuModuleUnload(module));
	CHECK(cuMemFree_v2(filled));
	CHECK(cuMemFree_v2(numbers));
}

static void run(const char *how_far, int device)
{
	context_t context;
	char name[64];
	int count;

	CHECK(cuInit(0));
	CHECK(cuDeviceGetCount(&count));
	CHECK(cuDeviceGetName(name, sizeof(name), device));
	printf("devices %d, %d is %s\n", count, device, name);
	if (!strcmp(how_far, "init"))
		return;
	if (!strcmp(how_far, "create")) {
		CHECK(cuCtxCreate_v2(&context, 0, device));
		work();
		CHECK(cuCtxDestroy_v2(context));
		return;
	}
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	if (!strcmp(how_far, "work"))
		work();
}

int main(int argc, char **argv)
{
	const char *how_far = "work";
	int is_held = 0, device = 0, rounds = 1;
	long after_ms = 0;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "after=", 6))
			after_ms = atol(argv[i] + 6);
		else if (!strncmp(argv[i], "device=", 7))
			device = atoi(argv[i] + 7);
		else if (!strncmp(argv[i], "rounds=", 7))
			rounds = atoi(argv[i] + 7);
		else if (!strcmp(argv[i], "hold"))
			is_held = 1;
		else
			how_far = argv[i];
	}
	nanosleep(&(struct timespec){after_ms / 1000, after_ms % 1000 * 1000000}, NULL);
	driver_open();
	while (rounds--)
		run(how_far, device);
	if (is_held) {
		char byte;

		printf("ready\n");
		fflush(stdout);
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
	}
	return 0;
}
