/* A whole small CUDA program on the driver's own interface: adds two arrays on the GPU and checks
 * the sum. What tools/quickstart shows, where there is no PyTorch. A program of its own, without
 * anything of Hearth's; prints one line that is the same every time.
 *
 *   first_calls [IMAGE]     IMAGE: a file with a kernel `add(target, a, b, count)`; PTX of its own
 *                           where none is named (the simulated driver cannot run PTX) */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 4096u
#define BLOCK 256u
#define LONGEST_IMAGE 65536

/* What the driver's header calls them. */
typedef int device;
typedef struct context *context;
typedef struct module *module;
typedef struct function *function;
typedef uint64_t memory;

static const char ptx[] = ".version 6.0\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .entry add(.param .u64 target, .param .u64 a, .param .u64 b,\n"
			  "	.param .u32 count)\n"
			  "{\n"
			  "	.reg .pred %outside;\n"
			  "	.reg .b32 %i, %n, %block, %x, %y;\n"
			  "	.reg .b64 %offset, %p, %q, %r;\n"
			  "	mov.u32 %i, %ctaid.x;\n"
			  "	mov.u32 %block, %ntid.x;\n"
			  "	mov.u32 %n, %tid.x;\n"
			  "	mad.lo.u32 %i, %i, %block, %n;\n"
			  "	ld.param.u32 %n, [count];\n"
			  "	setp.ge.u32 %outside, %i, %n;\n"
			  "	@%outside bra done;\n"
			  "	mul.wide.u32 %offset, %i, 4;\n"
			  "	ld.param.u64 %p, [a];\n"
			  "	ld.param.u64 %q, [b];\n"
			  "	ld.param.u64 %r, [target];\n"
			  "	cvta.to.global.u64 %p, %p;\n"
			  "	cvta.to.global.u64 %q, %q;\n"
			  "	cvta.to.global.u64 %r, %r;\n"
			  "	add.u64 %p, %p, %offset;\n"
			  "	add.u64 %q, %q, %offset;\n"
			  "	add.u64 %r, %r, %offset;\n"
			  "	ld.global.u32 %x, [%p];\n"
			  "	ld.global.u32 %y, [%q];\n"
			  "	add.u32 %x, %x, %y;\n"
			  "	st.global.u32 [%r], %x;\n"
			  "done:\n"
			  "	ret;\n"
			  "}\n";

static void *driver;

static void *entry(const char *name)
{
	void *address = dlsym(driver, name);

	if (!address) {
		fprintf(stderr, "%s: the driver lacks it\n", name);
		exit(EXIT_FAILURE);
	}
	return address;
}

static void check(const char *name, int rc)
{
	if (rc) {
		fprintf(stderr, "%s: %d\n", name, rc);
		exit(EXIT_FAILURE);
	}
}

#define CALL(name, types, ...) check(#name, ((int(*) types)entry(#name))(__VA_ARGS__))

/* The file's text, for the rest of the program's life. */
static const char *read_image(const char *path)
{
	static char image[LONGEST_IMAGE];
	FILE *file = fopen(path, "re");

	if (!file || !fread(image, 1, sizeof(image) - 1, file)) {
		perror(path);
		exit(EXIT_FAILURE);
	}
	fclose(file);
	return image;
}

int main(int argc, char **argv)
{
	static uint32_t a[COUNT], b[COUNT], sums[COUNT];
	const char *image = argc > 1 ? read_image(argv[1]) : ptx;
	memory arrays[3];
	uint32_t count = COUNT;
	void *parameters[] = {&arrays[0], &arrays[1], &arrays[2], &count};
	device device;
	context context;
	module module;
	function function;

	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver) {
		fprintf(stderr, "%s\n", dlerror());
		return EXIT_FAILURE;
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		a[i] = i;
		b[i] = 2 * i;
	}
	CALL(cuInit, (unsigned int), 0);
	CALL(cuDeviceGet, (int *, int), &device, 0);
	CALL(cuDevicePrimaryCtxRetain, (struct context **, int), &context, device);
	CALL(cuCtxSetCurrent, (struct context *), context);
	CALL(cuModuleLoadData, (struct module **, const void *), &module, image);
	CALL(cuModuleGetFunction, (struct function **, struct module *, const char *), &function,
		module, "add");
	for (int i = 0; i < 3; i++)
		CALL(cuMemAlloc_v2, (memory *, size_t), &arrays[i], sizeof(sums));
	CALL(cuMemcpyHtoD_v2, (memory, const void *, size_t), arrays[1], a, sizeof(a));
	CALL(cuMemcpyHtoD_v2, (memory, const void *, size_t), arrays[2], b, sizeof(b));
	CALL(cuLaunchKernel,
		(struct function *, unsigned int, unsigned int, unsigned int, unsigned int,
			unsigned int, unsigned int, unsigned int, void *, void **, void **),
		function, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, NULL, parameters, NULL);
	CALL(cuMemcpyDtoH_v2, (void *, memory, size_t), sums, arrays[0], sizeof(sums));
	for (uint32_t i = 0; i < COUNT; i++)
		if (sums[i] != 3 * i) {
			fprintf(stderr, "element %u is %u, not %u\n", i, sums[i], 3 * i);
			return EXIT_FAILURE;
		}
	CALL(cuModuleUnload, (struct module *), module);
	for (int i = 0; i < 3; i++)
		CALL(cuMemFree_v2, (memory), arrays[i]);
	CALL(cuDevicePrimaryCtxRelease_v2, (int), device);
	printf("added %u numbers\n", COUNT);
	return EXIT_SUCCESS;
}
