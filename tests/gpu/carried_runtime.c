/* Uses the CUDA runtimes named on the command line, one after another in one process, each opened
 * by path: older runtimes than the machine's compiler has, and several beside each other.
 *
 * Usage: carried_runtime FATBIN LIBCUDART... Prints return codes and results only. The kernel is
 * registered with each runtime as nvcc's own code would register it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 64, TO_DEVICE = 1, TO_HOST = 2, WRAPPER_MAGIC = 0x466243b1 };

struct extent {
	unsigned x, y, z;
};

struct wrapper {
	int magic, version;
	const void *data;
	void *unused;
};

static char *fatbin;
static char kernel_key; /* its address names the kernel to a runtime */

static int read_fatbin(const char *path)
{
	FILE *file = fopen(path, "rbe");
	long size;

	if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) <= 0) {
		fprintf(stderr, "carried_runtime: cannot read %s\n", path);
		return -1;
	}
	rewind(file);
	fatbin = aligned_alloc(16, ((size_t)size + 15) & ~(size_t)15);
	if (!fatbin || fread(fatbin, 1, (size_t)size, file) != (size_t)size) {
		fprintf(stderr, "carried_runtime: %s: read less than %ld bytes\n", path, size);
		return -1;
	}
	fclose(file);
	return 0;
}

static void *entry(void *runtime, const char *name)
{
	void *address = dlsym(runtime, name);

	if (!address) {
		printf("result no %s\n", name);
		exit(3);
	}
	return address;
}

static void use(const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	void *runtime = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int values[COUNT], wrong = 0, version = -7, devices = -7;
	struct wrapper *wrapper = calloc(1, sizeof(*wrapper));
	int *memory = NULL;
	void *arguments[] = {&memory};

	if (!runtime || !wrapper) {
		printf("result cannot open %s\n", base);
		exit(3);
	}
	printf("runtime %s\n", base);
	void **(*register_fatbin)(void *) = entry(runtime, "__cudaRegisterFatBinary");
	void (*register_end)(void **) = dlsym(runtime, "__cudaRegisterFatBinaryEnd");
	void (*register_function)(void **, const char *, char *, const char *, int, void *, void *,
		void *, void *, int *) = entry(runtime, "__cudaRegisterFunction");
	int (*driver_version)(int *) = entry(runtime, "cudaDriverGetVersion");
	int (*device_count)(int *) = entry(runtime, "cudaGetDeviceCount");
	int (*set_device)(int) = entry(runtime, "cudaSetDevice");
	int (*allocate)(void *, size_t) = entry(runtime, "cudaMalloc");
	int (*copy)(void *, const void *, size_t, int) = entry(runtime, "cudaMemcpy");
	int (*launch)(const void *, struct extent, struct extent, void **, size_t, void *) =
		entry(runtime, "cudaLaunchKernel");
	int (*synchronize)(void) = entry(runtime, "cudaDeviceSynchronize");
	int (*release)(void *) = entry(runtime, "cudaFree");
	void **handle;

	*wrapper = (struct wrapper){WRAPPER_MAGIC, 1, fatbin, NULL};
	handle = register_fatbin(wrapper);
	register_function(handle, &kernel_key, "twice", "twice", -1, NULL, NULL, NULL, NULL, NULL);
	if (register_end)
		register_end(handle);
	for (int i = 0; i < COUNT; i++)
		values[i] = i + 1;
	printf("result cudaDriverGetVersion %d", driver_version(&version));
	printf(" is %d\n", version);
	printf("result cudaGetDeviceCount %d", device_count(&devices));
	printf(" is %d\n", devices);
	printf("result cudaSetDevice of 99 %d\n", set_device(99));
	printf("result cudaSetDevice %d\n", set_device(0));
	printf("result cudaMalloc %d\n", allocate(&memory, sizeof(values)));
	printf("result cudaMemcpy %d\n", copy(memory, values, sizeof(values), TO_DEVICE));
	printf("result cudaLaunchKernel %d\n",
		launch(&kernel_key, (struct extent){1, 1, 1}, (struct extent){COUNT, 1, 1},
			arguments, 0, NULL));
	printf("result cudaDeviceSynchronize %d\n", synchronize());
	printf("result cudaMemcpy %d\n", copy(values, memory, sizeof(values), TO_HOST));
	for (int i = 0; i < COUNT; i++)
		wrong += values[i] != 2 * (i + 1);
	printf("result wrong values %d\n", wrong);
	printf("result cudaFree %d\n", release(memory));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: carried_runtime FATBIN LIBCUDART...\n");
		return 2;
	}
	if (read_fatbin(argv[1]) < 0)
		return 1;
	for (int i = 2; i < argc; i++)
		use(argv[i]);
	return 0;
}
