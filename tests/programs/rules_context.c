/* Rules of devices and contexts. */
#include "rules.h"

#include <pthread.h>

#define LAST_ATTRIBUTE 160
#define LIMITS 12

static word primary;

void rules_attributes(void)
{
	CALL(cuInit, 0);
	for (int i = 0; i < LAST_ATTRIBUTE; i++) {
		int value = -12345, rc = CALL(cuDeviceGetAttribute, W(&value), W(i), 0);

		/* Where a GPU sits on the bus is the machine's. */
		if (i == 33 || i == 34 || i == 50)
			value = 0;
		printf("%d: %d %d\n", i, rc, value);
	}
}

void rules_device(void)
{
	char text[64] = "untouched";
	int number = -7;
	word out = 0;

	CALL(cuInit, 0);
	SHOW("too high", cuDeviceGet, W(&number), 99);
	SHOW("negative", cuDeviceGet, W(&number), W(-1));
	SHOW("too high", cuDeviceGetName, W(text), 64, 99);
	SHOW("too high", cuDeviceTotalMem_v2, W(&out), 99);
	SHOW("too high", cuDeviceGetUuid_v2, W(text), 99);
	SHOW("too high", cuDeviceGetAttribute, W(&number), 1, 99);
	SHOW("unknown", cuDeviceGetAttribute, W(&number), 9999, 0);
	SHOW("itself", cuDeviceCanAccessPeer, W(&number), 0, 0);
	SHOW("", cuDeviceGetByPCIBusId, W(&number), W("nonsense"));
	SHOW("", cuDeviceGetByPCIBusId, W(&number), W("0000:00:00.0"));
	SHOW("too high", cuDevicePrimaryCtxRetain, W(&out), 99);
	SHOW("nowhere", cuDevicePrimaryCtxRetain, 0, 0);
	SHOW("too high", cuDevicePrimaryCtxRelease_v2, 99);
	SHOW("too high", cuCtxCreate_v2, W(&out), 0, 99);
	SHOW("wrong flags", cuCtxCreate_v2, W(&out), 0x10000, 0);
}

static void state(const char *text)
{
	unsigned int flags = 99;
	int is_active = -1, rc = CALL(cuDevicePrimaryCtxGetState, 0, W(&flags), W(&is_active));

	printf("state %s: %d, flags %u, active %d\n", text, rc, flags, is_active);
}

static word current(void)
{
	word context = 99;

	CALL(cuCtxGetCurrent, W(&context));
	return context;
}

static void use(const char *text)
{
	word memory = 0;

	printf("%s: current is %s;", text,
		!current()             ? "none"
		: current() == primary ? "the primary"
				       : "another");
	SHOW("there", cuMemAlloc_v2, W(&memory), 64);
}

void rules_primary(void)
{
	word again = 0;

	CALL(cuInit, 0);
	state("at first");
	SHOW("not retained", cuDevicePrimaryCtxRelease_v2, 0);
	SHOW("not retained", cuDevicePrimaryCtxRelease, 0);
	SHOW("nowhere", cuDevicePrimaryCtxGetState, 0, 0, 0);
	SHOW("", cuDevicePrimaryCtxRetain, W(&primary), 0);
	use("retained, not set");
	SHOW("again", cuDevicePrimaryCtxRetain, W(&again), 0);
	printf("same handle: %d\n", again == primary);
	state("retained twice");
	SHOW("", cuCtxSetCurrent, primary);
	use("set");
	SHOW("the primary", cuCtxDestroy_v2, primary);
	state("after a destroy");
	SHOW("", cuDevicePrimaryCtxRelease_v2, 0);
	state("released once");
	use("released once");
	SHOW("", cuDevicePrimaryCtxRelease, 0);
	state("released twice");
	use("released twice");
	SHOW("", cuCtxSynchronize, 0);
	SHOW("inactive", cuCtxPushCurrent_v2, primary);
	SHOW("inactive", cuCtxSetCurrent, primary);
	SHOW("inactive", cuCtxGetDevice, W(&(int){0}));
	SHOW("inactive", cuCtxGetApiVersion, primary, W(&(int){0}));
	state("after setting it");
	SHOW("a third time", cuDevicePrimaryCtxRelease_v2, 0);
	SHOW("anew", cuDevicePrimaryCtxRetain, W(&again), 0);
	printf("same handle: %d\n", again == primary);
	use("anew");
}

void rules_reset(void)
{
	word again = 0, memory = 0;

	CALL(cuInit, 0);
	SHOW("not active", cuDevicePrimaryCtxReset_v2, 0);
	state("after that");
	CALL(cuDevicePrimaryCtxRetain, W(&primary), 0);
	CALL(cuDevicePrimaryCtxRetain, W(&primary), 0);
	CALL(cuCtxSetCurrent, primary);
	CALL(cuMemAlloc_v2, W(&memory), 64);
	SHOW("retained twice", cuDevicePrimaryCtxReset_v2, 0);
	state("after that");
	use("after that");
	SHOW("memory from before", cuMemFree_v2, memory);
	SHOW("", cuDevicePrimaryCtxRelease_v2, 0);
	SHOW("", cuDevicePrimaryCtxRelease_v2, 0);
	SHOW("", cuDevicePrimaryCtxRelease_v2, 0);
	SHOW("", cuDevicePrimaryCtxRetain, W(&again), 0);
	printf("same handle: %d\n", again == primary);
	state("retained after the reset");
	use("retained after the reset");
	SHOW("", cuDevicePrimaryCtxRelease_v2, 0);
	state("released");
	SHOW("old ABI", cuDevicePrimaryCtxReset, 0);
	CALL(cuDevicePrimaryCtxRetain, W(&again), 0);
	CALL(cuDevicePrimaryCtxReset_v2, 0);
	CALL(cuDevicePrimaryCtxRetain, W(&again), 0);
	state("retained, reset, retained");
	SHOW("", cuDevicePrimaryCtxRelease_v2, 0);
	state("released once");
	SHOW("", cuDevicePrimaryCtxRelease_v2, 0);
	state("released twice");
}

void rules_flags(void)
{
	unsigned int flags = 99;

	CALL(cuInit, 0);
	SHOW("4", cuDevicePrimaryCtxSetFlags_v2, 0, 4);
	state("set to 4");
	SHOW("unknown", cuDevicePrimaryCtxSetFlags_v2, 0, 0x10000);
	SHOW("3", cuDevicePrimaryCtxSetFlags_v2, 0, 3);
	state("after these");
	CALL(cuDevicePrimaryCtxRetain, W(&primary), 0);
	CALL(cuCtxSetCurrent, primary);
	state("active");
	SHOW("", cuCtxGetFlags, W(&flags));
	printf("flags %u\n", flags);
	SHOW("the same, active", cuDevicePrimaryCtxSetFlags_v2, 0, 4);
	SHOW("others, active", cuDevicePrimaryCtxSetFlags_v2, 0, 1);
	state("after that");
	SHOW("the same, active", cuDevicePrimaryCtxSetFlags, 0, 1);
	SHOW("others, active", cuDevicePrimaryCtxSetFlags, 0, 2);
	state("after that");
	CALL(cuCtxGetFlags, W(&flags));
	printf("flags of the context %u\n", flags);
	CALL(cuDevicePrimaryCtxRelease_v2, 0);
	state("released");
	SHOW("inactive, old ABI", cuDevicePrimaryCtxSetFlags, 0, 2);
	state("after that");
}

static int depth(void)
{
	word popped[64];
	int count = 0;

	while (count < 64 && !CALL(cuCtxPopCurrent_v2, W(&popped[count])))
		count++;
	for (int i = count; i--;)
		CALL(cuCtxPushCurrent_v2, popped[i]);
	return count;
}

void rules_stack(void)
{
	word a = 0, b = 0, out = 0;
	int number = -1;

	CALL(cuInit, 0);
	SHOW("empty", cuCtxPopCurrent_v2, W(&out));
	SHOW("empty", cuCtxGetDevice, W(&number));
	SHOW("empty", cuCtxGetCurrent, W(&out));
	SHOW("empty", cuCtxSetCurrent, 0);
	SHOW("empty", cuCtxSynchronize, 0);
	SHOW("empty", cuCtxGetFlags, W(&number));
	SHOW("0", cuCtxPushCurrent_v2, 0);
	SHOW("", cuCtxCreate_v2, W(&a), 0, 0);
	printf("depth %d\n", depth());
	SHOW("", cuCtxCreate_v2, W(&b), 0, 0);
	printf("depth %d, current is the second: %d\n", depth(), current() == b);
	SHOW("0", cuCtxSetCurrent, 0);
	printf("depth %d, current is the first: %d\n", depth(), current() == a);
	SHOW("b", cuCtxSetCurrent, b);
	printf("depth %d, current is the second: %d\n", depth(), current() == b);
	SHOW("b", cuCtxPushCurrent_v2, b);
	SHOW("b", cuCtxPushCurrent_v2, b);
	printf("depth %d\n", depth());
	SHOW("current", cuCtxDestroy_v2, b);
	printf("depth %d, current is the second: %d\n", depth(), current() == b);
	SHOW("destroyed", cuCtxSynchronize, 0);
}

static void *in_thread(void *handle)
{
	word out;

	printf("thread: current is none: %d\n", current() == 0);
	SHOW("in a thread", cuCtxSetCurrent, W(handle));
	SHOW("in a thread", cuMemAlloc_v2, W(&out), 64);
	return NULL;
}

static void *after_destroy(void *handle)
{
	SHOW("in a thread", cuCtxSetCurrent, W(handle));
	CALL(cuCtxDestroy_v2, W(handle));
	SHOW("destroyed", cuCtxSynchronize, 0);
	return NULL;
}

static void version_of(const char *text, word context)
{
	unsigned int version = 0;
	int rc = CALL(cuCtxGetApiVersion, context, W(&version));

	printf("API version %s: %d, %u\n", text, rc, version);
}

void rules_created(void)
{
	word contexts[5] = {0}, out = 0, low[12] = {0};
	pthread_t thread;

	CALL(cuInit, 0);
	SHOW("", cuCtxCreate_v2, W(&contexts[0]), 0, 0);
	SHOW("", cuCtxCreate_v2, W(&contexts[1]), 4, 0);
	SHOW("", cuCtxCreate_v3, W(&contexts[2]), 0, 0, 1, 0);
	SHOW("", cuCtxCreate_v4, W(&contexts[3]), 0, 2, 0);
	for (int i = 0; i < 4; i++)
		version_of("by age", contexts[i]);
	CALL(cuDevicePrimaryCtxRetain, W(&primary), 0);
	version_of("of the primary", primary);
	for (int i = 0; i < LIMITS; i++) {
		out = 0;
		printf("limit %d: %d, ", i, CALL(cuCtxGetLimit, W(&out), W(i)));
		printf("%lu\n", (unsigned long)out);
	}
	SHOW("", cuCtxGetStreamPriorityRange, W(&low[0]), W(&low[1]));
	printf("priorities %d %d\n", (int)low[0], (int)low[1]);
	pthread_create(&thread, NULL, in_thread, (void *)contexts[1]);
	pthread_join(thread, NULL);
	pthread_create(&thread, NULL, after_destroy, (void *)contexts[1]);
	pthread_join(thread, NULL);
	SHOW("destroyed elsewhere", cuCtxDestroy_v2, contexts[1]);
	CALL(cuCtxSetCurrent, contexts[2]);
	CALL(cuMemAlloc_v2, W(&out), 64);
	CALL(cuCtxSetCurrent, contexts[0]);
	SHOW("memory of another context", cuMemFree_v2, out);
	SHOW("it is gone", cuMemFree_v2, out);
	SHOW("in the old ABI", cuCtxDestroy, contexts[0]);
}

/* What CUDA 2 had: device pointers and sizes of 32 bits. */
void rules_old(void)
{
	unsigned int memory[2] = {0, 0x5a5a5a5a}, total[2] = {0, 0x5a5a5a5a};
	char text[8] = "old", back[8] = "";
	word context = 0;

	CALL(cuInit, 0);
	SHOW("", cuDeviceTotalMem, W(total), 0);
	printf("total %u, %#x\n", total[0], total[1]);
	SHOW("", cuCtxCreate, W(&context), 0, 0);
	version_of("of the old ABI", context);
	SHOW("", cuMemAlloc, W(memory), 64);
	printf("an address %d, %#x\n", memory[0] > 0, memory[1]);
	SHOW("", cuMemcpyHtoD, memory[0], W(text), 8);
	SHOW("", cuMemcpyDtoH, W(back), memory[0], 8);
	printf("%s\n", back);
	SHOW("", cuMemFree, memory[0]);
	SHOW("", cuCtxDestroy, context);
}
