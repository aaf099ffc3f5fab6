/* Captures graphs while images load on Hearth's thread: from the context's first moment on, round
 * after round for the time it is given, then asks cuBLAS for products, whose images those are.
 * Usage: capture_rounds MS. Prints how many rounds there were and when (CLOCK_REALTIME, us), and
 * what went wrong, if anything did. */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cublas_v2.h>
#include <cuda_runtime.h>

static const int count = 256, side = 96;

__global__ void add(int *values)
{
	values[threadIdx.x] += 1;
}

static long now_us()
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000L + now.tv_nsec / 1000;
}

static void must(const char *call, int rc)
{
	if (rc) {
		printf("result %s %d\n", call, rc);
		exit(1);
	}
}

static void capture_once(cudaStream_t stream, int *values)
{
	cudaGraph_t graph;
	cudaGraphExec_t instance;

	must("begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	for (int i = 0; i < 8; i++)
		add<<<1, count, 0, stream>>>(values);
	must("end", cudaStreamEndCapture(stream, &graph));
	must("instantiate", cudaGraphInstantiate(&instance, graph, 0));
	must("launch", cudaGraphLaunch(instance, stream));
	must("synchronize", cudaStreamSynchronize(stream));
	must("destroy", cudaGraphExecDestroy(instance));
	must("destroy", cudaGraphDestroy(graph));
}

/* Single, double, half and complex products, each large enough for a kernel of its own. */
static void multiply(cublasHandle_t handle, void *memory)
{
	static const cudaDataType types[] = {
		CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_C_32F, CUDA_C_64F};
	static const cublasComputeType_t computes[] = {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F,
		CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F};
	static const double doubles[2] = {1, 0};
	static const float floats[2] = {1, 0};

	for (int i = 0; i < 5; i++) {
		const void *one =
			computes[i] == CUBLAS_COMPUTE_64F ? (const void *)doubles : floats;

		must("gemm", cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, side, side, side, one,
				     memory, types[i], side, memory, types[i], side, one, memory,
				     types[i], side, computes[i], CUBLAS_GEMM_DEFAULT));
	}
	must("products", cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	long first_us, last_us, rounds = 0, limit_us = (argc > 1 ? atol(argv[1]) : 100) * 1000;
	int *values, back[count];
	cublasHandle_t handle;
	cudaStream_t stream;
	void *memory;

	must("malloc", cudaMalloc(&values, sizeof(back)));
	must("memset", cudaMemset(values, 0, sizeof(back)));
	must("malloc", cudaMalloc(&memory, side * side * 16));
	must("memset", cudaMemset(memory, 0, side * side * 16));
	must("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	must("synchronize", cudaDeviceSynchronize());
	first_us = now_us();
	do {
		capture_once(stream, values);
		rounds++;
		last_us = now_us();
	} while (last_us - first_us < limit_us);
	must("copy", cudaMemcpy(back, values, sizeof(back), cudaMemcpyDefault));
	for (int i = 0; i < count; i++)
		if (back[i] != 8 * rounds)
			must("value", back[i]);
	must("create", cublasCreate(&handle));
	multiply(handle, memory);
	printf("{\"rounds\": %ld, \"first_us\": %ld, \"last_us\": %ld}\n", rounds, first_us,
		last_us);
	return 0;
}
