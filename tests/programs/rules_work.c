/* Rules of memory, modules, libraries and launches. The image is PTX that does nothing, which both
 * drivers take. */
#include "rules.h"

#include <stdlib.h>
#include <string.h>

#define PTX(name)                                                                                  \
	".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry " name "()\n{\n\tret;\n}"  \
	"\n"

static const char ptx[] = PTX("nop");

void rules_memory(void)
{
	word a = 0, b = 0, total = 0, host = 0;
	char buffer[256] = "text", back[256] = "";
	unsigned int type = 0;

	CALL(cuInit, 0);
	SHOW("no context", cuMemAlloc_v2, W(&a), 64);
	SHOW("no context", cuMemFree_v2, 0);
	SHOW("no context", cuMemGetInfo_v2, W(&a), W(&total));
	rules_context();
	SHOW("nothing", cuMemAlloc_v2, W(&a), 0);
	SHOW("nowhere", cuMemAlloc_v2, 0, 64);
	SHOW("too much", cuMemAlloc_v2, W(&a), W(1) << 50);
	SHOW("", cuMemAlloc_v2, W(&a), 256);
	SHOW("", cuMemcpyHtoD_v2, a, W(buffer), 256);
	SHOW("from the middle", cuMemcpyDtoH_v2, W(back), a + 1, 4);
	printf("%s\n", back);
	SHOW("nothing", cuMemcpyHtoD_v2, a, W(buffer), 0);
	SHOW("from nowhere", cuMemcpyHtoD_v2, a, 0, 16);
	SHOW("to nowhere", cuMemcpyHtoD_v2, 0, W(buffer), 16);
	SHOW("to an address of the host", cuMemcpyHtoD_v2, W(back), W(buffer), 16);
	SHOW("far beyond the end", cuMemcpyDtoH_v2, W(back), a, W(1) << 32);
	SHOW("any", cuMemcpy, W(back), a, 256);
	SHOW("within the device", cuMemcpyDtoD_v2, a + 16, a, 8);
	SHOW("0x41", cuMemsetD8_v2, a, 0x41, 3);
	CALL(cuMemcpyDtoH_v2, W(back), a, 8);
	printf("%.4s\n", back);
	SHOW("total only", cuMemGetInfo_v2, 0, W(&total));
	SHOW("nothing asked", cuMemGetInfo_v2, 0, 0);
	printf("total like the device's: %d\n", total > 0);
	SHOW("", cuMemGetAddressRange_v2, W(&b), W(&total), a + 17);
	printf("base %d, size %lu\n", a == b, (unsigned long)total);
	SHOW("of the host", cuMemGetAddressRange_v2, W(&b), W(&total), W(buffer));
	SHOW("type", cuPointerGetAttribute, W(&type), 2, a);
	printf("type %u\n", type);
	SHOW("type, of the host", cuPointerGetAttribute, W(&type), 2, W(buffer));
	SHOW("", cuMemFree_v2, a);
	SHOW("twice", cuMemFree_v2, a);
	SHOW("0", cuMemFree_v2, 0);
	SHOW("of the host", cuMemFree_v2, W(buffer));
	SHOW("after its end", cuMemcpyDtoH_v2, W(back), a, 8);
	SHOW("", cuMemHostAlloc, W(&host), 64, 0);
	SHOW("", cuMemFreeHost, host);
	SHOW("twice", cuMemFreeHost, host);
	SHOW("wrong flags", cuMemHostAlloc, W(&host), 64, 0x1000);
}

void rules_module(void)
{
	word module = 0, function = 0, other = 0;
	const char *name = NULL;
	unsigned int count = 0;
	int mode = -1, value = 0;

	CALL(cuInit, 0);
	SHOW("no context", cuModuleLoadData, W(&module), W(ptx));
	rules_context();
	SHOW("no image", cuModuleLoadData, W(&module), 0);
	SHOW("nowhere", cuModuleLoadData, 0, W(ptx));
	SHOW("garbage", cuModuleLoadData, W(&module), W("garbage, at that, and long enough"));
	SHOW("no file", cuModuleLoad, W(&module), W("/nonexistent/module.cubin"));
	SHOW("", cuModuleLoadData, W(&module), W(ptx));
	SHOW("", cuModuleGetFunctionCount, W(&count), module);
	printf("count %u\n", count);
	SHOW("", cuModuleGetFunction, W(&function), module, W("nop"));
	SHOW("", cuModuleGetFunction, W(&other), module, W("nop"));
	printf("same handle: %d\n", function == other);
	SHOW("unknown", cuModuleGetFunction, W(&other), module, W("other"));
	SHOW("no name", cuModuleGetFunction, W(&other), module, 0);
	SHOW("no module", cuModuleGetFunction, W(&other), 0, W("nop"));
	SHOW("", cuFuncGetModule, W(&other), function);
	printf("its module: %d\n", other == module);
	SHOW("", cuFuncGetName, W(&name), function);
	printf("name %s\n", name);
	SHOW("lazy", cuFuncIsLoaded, W(&mode), function);
	printf("loaded %d\n", mode);
	SHOW("", cuFuncLoad, function);
	CALL(cuFuncIsLoaded, W(&mode), function);
	printf("loaded %d\n", mode);
	SHOW("threads", cuFuncGetAttribute, W(&value), 0, function);
	printf("threads %d\n", value);
	SHOW("unknown", cuFuncGetAttribute, W(&value), 999, function);
	SHOW("", cuModuleGetLoadingMode, W(&mode));
	printf("mode %d\n", mode);
	SHOW("", cuModuleUnload, module);
}

void rules_library(void)
{
	word library = 0, kernel = 0, function = 0, other = 0;
	int option = 1;
	unsigned int count = 0;
	const char *name = NULL;

	CALL(cuInit, 0);
	SHOW("no context", cuLibraryLoadData, W(&library), W(ptx), 0, 0, 0, 0, 0, 0);
	SHOW("no context", cuLibraryGetKernel, W(&kernel), library, W("nop"));
	SHOW("no context", cuKernelGetFunction, W(&function), kernel);
	SHOW("no context", cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	SHOW("no image", cuLibraryLoadData, W(&other), 0, 0, 0, 0, 0, 0, 0);
	SHOW("garbage", cuLibraryLoadData, W(&other), W("garbage, at that, and long enough"), 0, 0,
		0, 0, 0, 0);
	SHOW("garbage", cuLibraryGetKernel, W(&kernel), other, W("nop"));
	SHOW("garbage", cuLibraryGetKernelCount, W(&count), other);
	SHOW("", cuLibraryGetKernel, W(&kernel), library, W("nop"));
	SHOW("preserved", cuLibraryLoadData, W(&other), W(ptx), 0, 0, 0, W(&option), W(&(word){0}),
		1);
	SHOW("no file", cuLibraryLoadFromFile, W(&other), W("/nonexistent/module.cubin"), 0, 0, 0,
		0, 0, 0);
	SHOW("", cuLibraryGetKernelCount, W(&count), library);
	printf("count %u\n", count);
	SHOW("unknown", cuLibraryGetKernel, W(&other), library, W("other"));
	rules_context();
	SHOW("", cuKernelGetFunction, W(&function), kernel);
	SHOW("", cuLibraryGetModule, W(&other), library);
	SHOW("", cuKernelGetName, W(&name), kernel);
	printf("name %s\n", name);
	SHOW("", cuKernelGetLibrary, W(&other), kernel);
	printf("its library: %d\n", other == library);
	SHOW("by the kernel", cuLaunchKernel, kernel, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	SHOW("by the function", cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	SHOW("", cuCtxSynchronize, 0);
	SHOW("", cuLibraryUnload, library);
}

void rules_eager(void)
{
	word module, function;
	int mode = -1;

	setenv("CUDA_MODULE_LOADING", "EAGER", 1);
	rules_context();
	setenv("CUDA_MODULE_LOADING", "LAZY", 1);
	SHOW("", cuModuleGetLoadingMode, W(&mode));
	printf("mode %d\n", mode);
	CALL(cuModuleLoadData, W(&module), W(ptx));
	CALL(cuModuleGetFunction, W(&function), module, W("nop"));
	CALL(cuFuncIsLoaded, W(&mode), function);
	printf("loaded %d\n", mode);
}

void rules_launch(void)
{
	word module = 0, function = 0;
	char config[64] = {0};
	unsigned int one = 1;

	rules_context();
	CALL(cuModuleLoadData, W(&module), W(ptx));
	CALL(cuModuleGetFunction, W(&function), module, W("nop"));
	SHOW("", cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	SHOW("empty grid", cuLaunchKernel, function, 0, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	SHOW("empty block", cuLaunchKernel, function, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0);
	SHOW("no function", cuLaunchKernel, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	SHOW("per-thread stream", cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, 2, 0, 0);
	SHOW("", cuLaunchKernel_ptsz, function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
	SHOW("too many threads", cuLaunchKernel, function, 1, 1, 1, 4096, 1, 1, 0, 0, 0, 0);
	SHOW("no config", cuLaunchKernelEx, 0, function, 0, 0);
	for (int i = 0; i < 6; i++)
		memcpy(config + 4 * i, &one, sizeof(one));
	SHOW("", cuLaunchKernelEx, W(config), function, 0, 0);
	SHOW("", cuLaunchCooperativeKernel, function, 1, 1, 1, 1, 1, 1, 0, 0, 0);
	SHOW("", cuCtxSynchronize, 0);
}
