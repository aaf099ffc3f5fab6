/* One of several libraries with a kernel each, which a copied folder holds: built with NUMBER. */
#include <cuda_runtime.h>

template <int number> __global__ void work(int *values)
{
	values[threadIdx.x] = number + (int)threadIdx.x;
}

/* What the kernel computed, or minus the runtime's error. */
extern "C" int run()
{
	int *values, back[32];
	cudaError_t rc = cudaMalloc(&values, sizeof(back));

	if (!rc)
		work<NUMBER><<<1, 32>>>(values);
	if (!rc)
		rc = cudaMemcpy(back, values, sizeof(back), cudaMemcpyDefault);
	return rc ? -(int)rc : back[31];
}
