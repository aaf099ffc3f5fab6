/* A driver-API program as people write them: linked with libcuda, and looking entries up as well.
 * Run by tools/gpu-check with and without the preload; prints return codes and results only. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1024, BLOCK = 256 };

static const char kernel_text[] = ".version 6.5\n"
				  ".target sm_75\n"
				  ".address_size 64\n"
				  ".visible .entry twice(.param .u64 values)\n"
				  "{\n"
				  ".reg .b32 %r<5>;\n"
				  ".reg .b64 %rd<4>;\n"
				  "ld.param.u64 %rd1, [values];\n"
				  "mov.u32 %r1, %ctaid.x;\n"
				  "mov.u32 %r2, %ntid.x;\n"
				  "mov.u32 %r3, %tid.x;\n"
				  "mad.lo.s32 %r1, %r1, %r2, %r3;\n"
				  "mul.wide.s32 %rd2, %r1, 4;\n"
				  "cvta.to.global.u64 %rd1, %rd1;\n"
				  "add.s64 %rd3, %rd1, %rd2;\n"
				  "ld.global.u32 %r4, [%rd3];\n"
				  "add.s32 %r4, %r4, %r4;\n"
				  "st.global.u32 [%rd3], %r4;\n"
				  "ret;\n"
				  "}\n";

static void say(const char *call, CUresult rc)
{
	const char *name = "?";

	cuGetErrorName(rc, &name);
	printf("result %s %d %s\n", call, rc, name);
}

static void before_init(void)
{
	int count = -7, version = -7;
	CUcontext context = NULL;

	say("cuDeviceGetCount before cuInit", cuDeviceGetCount(&count));
	say("cuCtxGetCurrent before cuInit", cuCtxGetCurrent(&context));
	say("cuDriverGetVersion before cuInit", cuDriverGetVersion(&version));
	printf("result outputs %d %d\n", count, version);
}

static void lookups(void)
{
	static const char *const names[] = {"cuInit", "cuCtxCreate", "cuGetProcAddress",
		"cuMemAlloc", "cuStreamBeginCapture", "cuNoSuchThing"};
	static const int versions[] = {2000, 3020, 7000, 11030, 12000, 13000, 99000};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (size_t k = 0; k < sizeof(versions) / sizeof(versions[0]); k++) {
			CUdriverProcAddressQueryResult status = 77;
			void *address = (void *)1;
			CUresult rc = cuGetProcAddress(names[i], &address, versions[k], 0, &status);

			printf("result lookup %s@%d rc %d status %d %s\n", names[i], versions[k],
				rc, (int)status,
				address == NULL        ? "NULL"
				: address == (void *)1 ? "untouched"
						       : "found");
		}
	}
}

static void compute(void)
{
	int values[COUNT], back[COUNT], wrong = 0;
	CUdeviceptr memory = 0;
	CUmodule module = NULL;
	CUfunction function = NULL;
	CUstream stream = NULL;
	void *arguments[] = {&memory};

	for (int i = 0; i < COUNT; i++)
		values[i] = i * 3;
	say("cuModuleLoadData", cuModuleLoadData(&module, kernel_text));
	say("cuModuleGetFunction", cuModuleGetFunction(&function, module, "twice"));
	say("cuModuleGetFunction of none", cuModuleGetFunction(&function, module, "thrice"));
	cuModuleGetFunction(&function, module, "twice");
	say("cuMemAlloc", cuMemAlloc(&memory, sizeof(values)));
	say("cuMemcpyHtoD", cuMemcpyHtoD(memory, values, sizeof(values)));
	say("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	say("cuLaunchKernel", cuLaunchKernel(function, COUNT / BLOCK, 1, 1, BLOCK, 1, 1, 0, stream,
				      arguments, NULL));
	say("cuStreamSynchronize", cuStreamSynchronize(stream));
	memset(back, 0, sizeof(back));
	say("cuMemcpyDtoH", cuMemcpyDtoH(back, memory, sizeof(back)));
	for (int i = 0; i < COUNT; i++)
		wrong += back[i] != 2 * values[i];
	printf("result wrong values %d\n", wrong);
	say("cuMemAlloc of a petabyte", cuMemAlloc(&memory, (size_t)1 << 50));
	say("cuModuleLoadData of nonsense", cuModuleLoadData(&module, "no module"));
	say("cuStreamDestroy", cuStreamDestroy(stream));
}

static void contexts(CUdevice device)
{
	CUcontext own = NULL, primary = NULL, current = NULL;
	unsigned flags = 77;
	int active = -7;

	say("cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState(device, &flags, &active));
	printf("result state %u %d\n", flags, active);
	say("cuDevicePrimaryCtxSetFlags",
		cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_BLOCKING_SYNC));
	say("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&primary, device));
	say("cuDevicePrimaryCtxSetFlags when active",
		cuDevicePrimaryCtxSetFlags(device, CU_CTX_SCHED_SPIN));
	say("cuDevicePrimaryCtxGetState", cuDevicePrimaryCtxGetState(device, &flags, &active));
	printf("result state %u %d\n", flags, active);
	say("cuCtxSetCurrent", cuCtxSetCurrent(primary));
	compute();
#if CUDA_VERSION >= 13000
	say("cuCtxCreate", cuCtxCreate(&own, NULL, 0, device));
#else
	say("cuCtxCreate", cuCtxCreate(&own, 0, device));
#endif
	say("cuCtxGetCurrent", cuCtxGetCurrent(&current));
	printf("result own is current %d, differs from primary %d\n", own == current,
		own != primary);
	compute();
	say("cuCtxDestroy", cuCtxDestroy(own));
	say("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease(device));
	say("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset(device));
}

int main(void)
{
	char name[256] = "";
	size_t total = 0;
	CUdevice device;
	int count = -7;

	before_init();
	lookups();
	say("cuInit with flags", cuInit(4));
	say("cuInit", cuInit(0));
	say("cuInit again", cuInit(0));
	say("cuDeviceGetCount", cuDeviceGetCount(&count));
	printf("result devices %d\n", count);
	say("cuDeviceGet of 99", cuDeviceGet(&device, 99));
	say("cuDeviceGet", cuDeviceGet(&device, 0));
	say("cuDeviceGetName", cuDeviceGetName(name, sizeof(name), device));
	say("cuDeviceTotalMem", cuDeviceTotalMem(&total, device));
	printf("result device %s %zu\n", name, total);
	contexts(device);
	lookups();
	return 0;
}
