/* The simulated driver's stand-in for first_step.py: a driver program whose first step loads images
 * that lie in its own file and launches a kernel of each. Prints what that script prints. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { IMAGES = 6 };
#define WRAPPER 0x466243b1u
#define FAT_MAGIC 0xba55ed50u

/* What a compiler's output is registered by (fatbinary_section.h of the toolkit). */
struct wrapper {
	uint32_t magic, version;
	const void *data;
	void *unused;
};

/* A fat binary's header, and for its content an image of the simulated driver. */
struct image {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	char text[64];
};

#define IMAGE(size)                                                                                \
	{                                                                                          \
		FAT_MAGIC, 1, 16, 64, "SIMCUDA1\nsize " #size "\nkernel work nothing\n"            \
	}
static const struct image images[IMAGES] = {IMAGE(2000001), IMAGE(2000002), IMAGE(2000003),
	IMAGE(2000004), IMAGE(2000005), IMAGE(2000006)};
static struct wrapper wrappers[IMAGES];

static void *driver;

static double now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

#define CALL(name, ...)                                                                            \
	do {                                                                                       \
		int rc = ((int (*)())dlsym(driver, #name))(__VA_ARGS__);                           \
		if (rc) {                                                                          \
			fprintf(stderr, #name " gave %d\n", rc);                                   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static void step(void *libraries[IMAGES])
{
	void *function, *kernel;

	for (int i = 0; i < IMAGES; i++) {
		if (!libraries[i])
			CALL(cuLibraryLoadData, &libraries[i], &wrappers[i], NULL, NULL, 0, NULL,
				NULL, 0);
		CALL(cuLibraryGetKernel, &kernel, libraries[i], "work");
		CALL(cuKernelGetFunction, &function, kernel);
		CALL(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	}
	CALL(cuCtxSynchronize);
}

int main(void)
{
	double begun = now_ms(CLOCK_MONOTONIC), imported, ready, placed, took[3], at_ms[2] = {0};
	void *libraries[IMAGES] = {NULL};
	void *context;
	char line[8];

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		return 1;
	for (int i = 0; i < IMAGES; i++)
		wrappers[i] = (struct wrapper){WRAPPER, 1, &images[i], NULL};
	dlsym(driver, "cuInit");
	usleep(500000);
	imported = now_ms(CLOCK_MONOTONIC);
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	ready = now_ms(CLOCK_MONOTONIC);
	CALL(cuInit, 0);
	CALL(cuDevicePrimaryCtxRetain, &context, 0);
	CALL(cuCtxSetCurrent, context);
	placed = now_ms(CLOCK_MONOTONIC);
	at_ms[0] = now_ms(CLOCK_REALTIME);
	for (int i = 0; i < 3; i++) {
		static const char *const ends[] = {"setup", "step 1", "step 2"};
		void (*phase)(const char *) =
			(void (*)(const char *))dlsym(RTLD_DEFAULT, "trace_phase");
		double before = 0;

		if (phase)
			phase(ends[i]);
		before = now_ms(CLOCK_MONOTONIC);
		step(libraries);
		took[i] = now_ms(CLOCK_MONOTONIC) - before;
		if (!i)
			at_ms[1] = now_ms(CLOCK_REALTIME);
	}
	printf("{\"ms\": {\"import\": %.3f, \"to GPU\": %.3f, \"step 1\": %.3f, \"step 3\": %.3f}, "
	       "\"step_at_us\": [%.0f, %.0f], \"memory_mib\": {\"gpu\": 0, \"VmHWM\": 0}, "
	       "\"files\": [], \"faults\": {\"major\": 0, \"minor\": 0}}\n",
		imported - begun, placed - ready, took[0], took[2], at_ms[0] * 1e3, at_ms[1] * 1e3);
	return 0;
}
