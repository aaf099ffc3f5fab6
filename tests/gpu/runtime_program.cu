/* A runtime-API program, built by tools/gpu-check with the static and with the shared runtime, and
 * run with and without the preload; prints return codes and results only. */
#include <cstdio>
#include <cuda_runtime.h>

static const int count = 1 << 16;
__device__ int device_word = 5;

__global__ void twice(int *values)
{
	int index = blockIdx.x * blockDim.x + threadIdx.x;

	values[index] = 2 * values[index] + device_word;
}

static void say(const char *call, cudaError_t rc)
{
	printf("result %s %d %s\n", call, (int)rc, cudaGetErrorName(rc));
}

int main()
{
	static int values[count], back[count];
	int *memory = nullptr, devices = -7, version = -7, current = -7, wrong = 0, word = 11;
	cudaDeviceProp properties = {};
	cudaStream_t stream = nullptr;
	cudaEvent_t event = nullptr;
	cudaGraph_t graph = nullptr;
	cudaGraphExec_t instance = nullptr;
	void *entry = nullptr;
	cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;

	for (int i = 0; i < count; i++)
		values[i] = i;
	say("cudaSetDeviceFlags", cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
	say("cudaDriverGetVersion", cudaDriverGetVersion(&version));
	say("cudaGetDeviceCount", cudaGetDeviceCount(&devices));
	printf("result version %d devices %d\n", version, devices);
	say("cudaSetDevice of 99", cudaSetDevice(99));
	say("cudaSetDevice", cudaSetDevice(0));
	say("cudaGetDevice", cudaGetDevice(&current));
	say("cudaGetDeviceProperties", cudaGetDeviceProperties(&properties, 0));
	printf("result device %d %s %d.%d\n", current, properties.name, properties.major,
		properties.minor);
	say("cudaMalloc", cudaMalloc(&memory, sizeof(values)));
	say("cudaMemcpy", cudaMemcpy(memory, values, sizeof(values), cudaMemcpyHostToDevice));
	say("cudaMemcpyToSymbol", cudaMemcpyToSymbol(device_word, &word, sizeof(word)));
	twice<<<count / 256, 256>>>(memory);
	say("launch", cudaGetLastError());
	say("cudaDeviceSynchronize", cudaDeviceSynchronize());
	say("cudaStreamCreate", cudaStreamCreate(&stream));
	say("cudaEventCreate", cudaEventCreate(&event));
	say("cudaStreamBeginCapture", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	twice<<<count / 256, 256, 0, stream>>>(memory);
	say("cudaStreamEndCapture", cudaStreamEndCapture(stream, &graph));
	say("cudaGraphInstantiate", cudaGraphInstantiate(&instance, graph, 0));
	say("cudaGraphLaunch", cudaGraphLaunch(instance, stream));
	say("cudaEventRecord", cudaEventRecord(event, stream));
	say("cudaEventSynchronize", cudaEventSynchronize(event));
	say("cudaMemcpy", cudaMemcpy(back, memory, sizeof(back), cudaMemcpyDeviceToHost));
	for (int i = 0; i < count; i++)
		wrong += back[i] != 2 * (2 * values[i] + word) + word;
	printf("result wrong values %d\n", wrong);
	say("cudaGetDriverEntryPoint", cudaGetDriverEntryPointByVersion("cuMemCreate", &entry, 12000,
					       cudaEnableDefault, &found));
	printf("result entry %s %d\n", entry ? "found" : "none", (int)found);
	say("cudaMalloc of a petabyte", cudaMalloc(&memory, (size_t)1 << 50));
	say("cudaDeviceReset", cudaDeviceReset());
	say("cudaMalloc after the reset", cudaMalloc(&memory, 4096));
	return 0;
}
