/* A library or a program that is linked to libcuda.so.1 (DT_NEEDED) and says which entries it is
 * bound to: the driver answers a canary with the number of the row. */
#include <stdint.h>
#include <stdio.h>

#define CANARY UINT64_C(0xca11ab1e)

int cuInit(uint64_t);
int cuMemAlloc_v2(uint64_t, uint64_t);
int cuMemcpyHtoDAsync_v2_ptsz(uint64_t, uint64_t, uint64_t, uint64_t);
int cuCtxCreate(uint64_t, uint64_t, uint64_t);
int cuLaunchKernel(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t);
__attribute__((visibility("default"))) int bound_report(void);

int bound_report(void)
{
	printf("bound to %d %d %d %d %d\n", cuInit(CANARY), cuMemAlloc_v2(CANARY, 2),
		cuMemcpyHtoDAsync_v2_ptsz(CANARY, 2, 3, 4), cuCtxCreate(CANARY, 2, 3),
		cuLaunchKernel(CANARY, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
	printf("cuInit %d\n", cuInit(0));
	/* In a namespace of its own, nobody else flushes this stdout. */
	fflush(stdout);
	return 0;
}

#ifdef BOUND_MAIN
int main(void)
{
	return bound_report();
}
#endif
