/* A program's device work as nvcc would compile it: a fat binary in sections of its own, a wrapper,
 * host functions registered before main, cudaLaunchKernel. */
#include "work.h"

#include "runtime.h"

#include <stdio.h>
#include <string.h>

#define COUNT 512
#define FAT_VERSION 1
/* As heavy as a small library: 1 MiB, in the simulated driver's image format. */
#define TEXT "SIMCUDA1\nsize 1048576\nkernel add_arrays add\nkernel fill_array fill\n"

__attribute__((section(".nv_fatbin"), aligned(8))) static const struct {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	char text[sizeof(TEXT)];
} fatbin = {FAT_MAGIC, FAT_VERSION, 16, sizeof(TEXT), TEXT};

__attribute__((section(".nvFatBinSegment"))) static struct fat_wrapper wrapper = {
	FAT_WRAPPER_MAGIC, 1, &fatbin, NULL};

/* Host functions: only their addresses are used. */
static char add_arrays, fill_array;

__attribute__((constructor)) static void register_kernels(void)
{
	void **handle = __cudaRegisterFatBinary(&wrapper);

	__cudaRegisterFunction(
		handle, &add_arrays, NULL, "add_arrays", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(
		handle, &fill_array, NULL, "fill_array", -1, NULL, NULL, NULL, NULL, NULL);
}

#define TRY(call)                                                                                  \
	do {                                                                                       \
		int rc = call;                                                                     \
                                                                                                   \
		printf("%s: %.*s %d\n", who, (int)strcspn(#call, "("), #call, rc);                 \
		fflush(stdout);                                                                    \
		if (rc)                                                                            \
			return rc;                                                                 \
	} while (0)

int work_run(const char *who, int device)
{
	const dim3 one = {1, 1, 1}, block = {COUNT, 1, 1};
	uint32_t numbers[COUNT], value = 5, count = COUNT;
	void *a, *b;

	TRY(cudaSetDevice(device));
	TRY(cudaMalloc(&a, sizeof(numbers)));
	TRY(cudaMalloc(&b, sizeof(numbers)));
	for (uint32_t i = 0; i < COUNT; i++)
		numbers[i] = i;
	TRY(cudaMemcpy(a, numbers, sizeof(numbers), cudaMemcpyHostToDevice));
	TRY(cudaLaunchKernel(&fill_array, one, block, (void *[]){&b, &value, &count}, 0, NULL));
	TRY(cudaLaunchKernel(&add_arrays, one, block, (void *[]){&a, &a, &b, &count}, 0, NULL));
	TRY(cudaDeviceSynchronize());
	memset(numbers, 0, sizeof(numbers));
	TRY(cudaMemcpy(numbers, a, sizeof(numbers), cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < COUNT; i++)
		if (numbers[i] != i + value) {
			printf("%s: wrong at %u: %u\n", who, i, numbers[i]);
			return -1;
		}
	printf("%s: result right\n", who);
	TRY(cudaFree(b));
	TRY(cudaFree(a));
	TRY(cudaGetLastError());
	return 0;
}
