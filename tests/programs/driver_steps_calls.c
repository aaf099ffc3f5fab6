/* The steps of driver_steps that call the driver. */
#include "driver_steps.h"

#include <string.h>

#define P(pointer) ((uint64_t)(uintptr_t)(pointer))
#define COUNT 256

static const char image[] = "SIMCUDA1\nkernel fill fill\n";

void *steps_entry(const char *symbol)
{
	static void *driver;
	void *entry;

	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	entry = driver ? dlsym(driver, symbol) : NULL;
	if (!entry) {
		printf("%s: %s\n", symbol, dlerror());
		exit(77);
	}
	return entry;
}

/* What it is to the program: how many, and each one's UUID. */
static void show_devices(void)
{
	int count = -1, rc = STEPS_CALL(cuDeviceGetCount, P(&count));

	printf("cuDeviceGetCount %d: %d\n", rc, count);
	for (int i = 0; i < count; i++) {
		unsigned char uuid[16];

		rc = STEPS_CALL(cuDeviceGetUuid_v2, P(uuid), (uint64_t)i);
		printf("device %d: %d ", i, rc);
		for (int j = 0; j < 16; j++)
			printf("%02x", uuid[j]);
		printf("\n");
	}
}

static void show_state(int device)
{
	unsigned int flags = 77;
	int is_active = 77, rc;

	rc = STEPS_CALL(cuDevicePrimaryCtxGetState, (uint64_t)device, P(&flags), P(&is_active));
	printf("state %d: flags %u, active %d\n", rc, flags, is_active);
}

static void retain(int device)
{
	uint64_t context = 0;
	unsigned int flags = 77;
	int rc = STEPS_CALL(cuDevicePrimaryCtxRetain, P(&context), (uint64_t)device);

	printf("retain %d: %s", rc, context ? "a context" : "none");
	if (!rc) {
		rc = STEPS_CALL(cuCtxSetCurrent, context);
		printf(", set %d", rc);
		rc = STEPS_CALL(cuCtxGetFlags, P(&flags));
		printf(", flags %d: %u", rc, flags);
	}
	printf("\n");
}

static uint64_t created;

/* "DEVICE" or "DEVICE,FLAGS". */
static void create(const char *value)
{
	const char *comma = strchr(value, ',');
	int rc;

	created = 0;
	rc = STEPS_CALL(cuCtxCreate_v2, P(&created), (uint64_t)(comma ? atoi(comma + 1) : 0),
		(uint64_t)atoi(value));
	printf("create %d: %s\n", rc, created ? "a context" : "none");
}

/* What the calling thread's stack of contexts looks like. */
static void show_stack(void)
{
	uint64_t context = 0, popped[8];
	unsigned int flags = 77, version = 77;
	int device = -1, depth = 0, rc;

	rc = STEPS_CALL(cuCtxGetDevice, P(&device));
	printf("stack: device %d %d", rc, device);
	rc = STEPS_CALL(cuCtxGetFlags, P(&flags));
	printf(", flags %d %u", rc, flags);
	STEPS_CALL(cuCtxGetCurrent, P(&context));
	rc = STEPS_CALL(cuCtxGetApiVersion, context, P(&version));
	printf(", version %d %u", rc, version);
	while (depth < 8 && !STEPS_CALL(cuCtxPopCurrent_v2, P(&popped[depth])) && popped[depth])
		depth++;
	printf(", depth %d\n", depth);
	while (depth > 0)
		STEPS_CALL(cuCtxPushCurrent_v2, popped[--depth]);
}

static void set_flags(const char *value, int is_first_version)
{
	int device = atoi(value), flags = atoi(strchr(value, ',') + 1), rc;

	if (is_first_version)
		rc = STEPS_CALL(cuDevicePrimaryCtxSetFlags, (uint64_t)device, (uint64_t)flags);
	else
		rc = STEPS_CALL(cuDevicePrimaryCtxSetFlags_v2, (uint64_t)device, (uint64_t)flags);
	printf("flags %d\n", rc);
}

/* Memory, a module, a launch, and the result. */
static void work(void)
{
	uint32_t host[COUNT] = {0}, value = 7, count = COUNT;
	uint64_t memory = 0, module = 0, function = 0;
	void *parameters[] = {&memory, &value, &count};
	int codes[7], wrong = 0;

	codes[0] = STEPS_CALL(cuMemAlloc_v2, P(&memory), sizeof(host));
	codes[1] = STEPS_CALL(cuModuleLoadData, P(&module), P(image));
	codes[2] = STEPS_CALL(cuModuleGetFunction, P(&function), module, P("fill"));
	codes[3] = STEPS_CALL(cuLaunchKernel, function, UINT64_C(1), UINT64_C(1), UINT64_C(1),
		(uint64_t)COUNT, UINT64_C(1), UINT64_C(1), UINT64_C(0), UINT64_C(0), P(parameters),
		UINT64_C(0));
	codes[4] = STEPS_CALL(cuMemcpyDtoH_v2, P(host), memory, sizeof(host));
	codes[5] = STEPS_CALL(cuModuleUnload, module);
	codes[6] = STEPS_CALL(cuMemFree_v2, memory);
	for (int i = 0; i < COUNT; i++)
		wrong += host[i] != value;
	printf("work");
	for (int i = 0; i < 7; i++)
		printf(" %d", codes[i]);
	printf(", %d wrong\n", wrong);
}

/* Bytes there and back, which any driver does at once. */
static void copy_bytes(void)
{
	uint32_t there[COUNT], back[COUNT] = {0};
	uint64_t memory = 0;
	int codes[4];

	for (uint32_t i = 0; i < COUNT; i++)
		there[i] = i ^ 0x5a5a;
	codes[0] = STEPS_CALL(cuMemAlloc_v2, P(&memory), sizeof(there));
	codes[1] = STEPS_CALL(cuMemcpyHtoD_v2, memory, P(there), sizeof(there));
	codes[2] = STEPS_CALL(cuMemcpyDtoH_v2, P(back), memory, sizeof(back));
	codes[3] = STEPS_CALL(cuMemFree_v2, memory);
	printf("copy %d %d %d %d, %s\n", codes[0], codes[1], codes[2], codes[3],
		memcmp(there, back, sizeof(back)) ? "wrong" : "right");
}

static void show_memory(void)
{
	uint64_t free_bytes = 0, total = 0;
	int rc = STEPS_CALL(cuMemGetInfo_v2, P(&free_bytes), P(&total));

	printf("memory %d: %d MiB used\n", rc, (int)((total - free_bytes) >> 20));
}

static void ask_at_exit(void)
{
	int count = -1, rc = STEPS_CALL(cuDeviceGetCount, P(&count));

	printf("at exit: cuDeviceGetCount %d: %d\n", rc, count);
}

/* The table that the runtime asks for early, or another one. */
static void ask_for_table(int is_other)
{
	unsigned char uuid[16] = {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb,
		0x46, 0x9e, 0x7c, 0x0d, 0xd9};
	const void *table = NULL;

	uuid[0] = (unsigned char)(uuid[0] + is_other);
	printf("table %d\n", STEPS_CALL(cuGetExportTable, P(&table), P(uuid)));
}

/* What nvmlInit does with the driver at its first time, and at each later one. */
static void start_nvml(void)
{
	static const unsigned char uuid[16] = {0x69, 0xa2, 0x8e, 0x9f, 0x24, 0x49, 0x8b, 0x47, 0xb0,
		0x30, 0xc5, 0xda, 0x33, 0x0e, 0xa4, 0xe9};
	static int (*const *table)(void *, void *);
	uint64_t first = 1, second = 1;
	const void *given = NULL;
	int is_first = !table;

	if (is_first) {
		printf("table %d\n", STEPS_CALL(cuGetExportTable, P(&given), P(uuid)));
		table = given;
	}
	if (!table)
		return;
	printf("nvml %zu bytes, enter %d\n", (size_t)(uintptr_t)table[0], table[24](NULL, NULL));
	if (is_first) {
		printf("nvml describe %d", table[19](&first, &second));
		printf(": %d %d\n", (int)first, (int)second);
		printf("nvml attach %d\n", table[21](&first, &second));
	}
	printf("nvml leave %d\n", table[25](NULL, NULL));
}

/* The file that a tool takes for the driver: the first mapped one of a driver's name. */
static int find_mapped(char path[4096])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4352];
	int is_found = 0;

	while (maps && !is_found && fgets(line, sizeof(line), maps)) {
		const char *name;

		line[strcspn(line, "\n")] = '\0';
		name = strstr(line, "/libcuda.so");
		is_found = name && strspn(name + 11, ".0123456789") == strlen(name + 11);
		if (is_found)
			snprintf(path, 4096, "%s", strchr(line, '/'));
	}
	if (maps)
		fclose(maps);
	return is_found;
}

/* As CUPTI does it (13.0.85, read from its code): the driver is opened by the path in
 * /proc/self/maps, else by its name. What it then sees must be what the program sees. */
static void look_as_a_tool(int does_init)
{
	char path[4096];
	void *driver = dlopen(find_mapped(path) ? path : "libcuda.so.1", RTLD_NOW);
	int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(driver, "cuInit");
	int (*count_devices)(int *) = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
	int (*current)(void **) = (int (*)(void **))dlsym(driver, "cuCtxGetCurrent");
	void *own = NULL, *seen = NULL;
	int count = -1, rc;

	if (does_init)
		printf("tool: cuInit %d\n", init(0));
	rc = count_devices(&count);
	printf("tool: cuDeviceGetCount %d: %d\n", rc, count);
	rc = current(&seen);
	STEPS_CALL(cuCtxGetCurrent, P(&own));
	printf("tool: cuCtxGetCurrent %d: %s, %s\n", rc, seen ? "a context" : "none",
		seen == own ? "the program's" : "another than the program's");
}

static void show_version(void)
{
	int version = -1, rc = STEPS_CALL(cuDriverGetVersion, P(&version));

	printf("version %d: %d\n", rc, version);
}

static void show_error(void)
{
	const char *name = NULL;
	int rc = STEPS_CALL(cuGetErrorName, 802, P(&name));

	printf("error %d: %s\n", rc, name);
}

int steps_driver(const char *step, const char *value)
{
	int number = atoi(value), count = -1;

	if (!strcmp(step, "lookup"))
		steps_entry("cuInit");
	else if (!strcmp(step, "init"))
		printf("cuInit %d\n", STEPS_CALL(cuInit, (uint64_t)number));
	else if (!strcmp(step, "count"))
		printf("cuDeviceGetCount %d: %d\n", STEPS_CALL(cuDeviceGetCount, P(&count)), count);
	else if (!strcmp(step, "devices"))
		show_devices();
	else if (!strcmp(step, "retain"))
		retain(number);
	else if (!strcmp(step, "release"))
		printf("release %d\n", STEPS_CALL(cuDevicePrimaryCtxRelease_v2, (uint64_t)number));
	else if (!strcmp(step, "reset"))
		printf("reset %d\n", STEPS_CALL(cuDevicePrimaryCtxReset_v2, (uint64_t)number));
	else if (!strcmp(step, "state"))
		show_state(number);
	else if (!strcmp(step, "flags"))
		set_flags(value, 0);
	else if (!strcmp(step, "v1flags"))
		set_flags(value, 1);
	else if (!strcmp(step, "atexit"))
		atexit(ask_at_exit);
	else if (!strcmp(step, "table"))
		ask_for_table(number);
	else if (!strcmp(step, "nvml"))
		start_nvml();
	else if (!strcmp(step, "tool"))
		look_as_a_tool(number);
	else if (!strcmp(step, "version"))
		show_version();
	else if (!strcmp(step, "error"))
		show_error();
	else if (!strcmp(step, "create"))
		create(value);
	else if (!strcmp(step, "destroy"))
		printf("destroy %d\n", STEPS_CALL(cuCtxDestroy_v2, created));
	else if (!strcmp(step, "stack"))
		show_stack();
	else if (!strcmp(step, "work"))
		work();
	else if (!strcmp(step, "copy"))
		copy_bytes();
	else if (!strcmp(step, "memory"))
		show_memory();
	else
		return 0;
	return 1;
}
