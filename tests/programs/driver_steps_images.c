/* The steps of driver_steps that load images and use them. Image I is the one of that number in the
 * library that `images` opened.
 *
 *   images=FILE   opens a library of images (image_plugin.c)
 *   lib=I modfat=I mod=I modex=I     as the library has it: cuLibraryLoadData of its wrapper,
 *                                    cuModuleLoadFatBinary, cuModuleLoadData, cuModuleLoadDataEx
 *   heaplib=I heapmod=I              the same of a copy of the fat binary on the heap, which is
 *                                    overwritten and freed afterwards
 *   keptlib=I                        a library of a copy that stays, as the option says
 *   novalues=I                       the same, the option without a value
 *   jitlib=I,O,V                     a library of a copy that goes, with a JIT option and its value
 *   optlib=I,O,V  with library option O of value V
 *   launch=S func=S twice=S          what was loaded S-th: its kernel, used
 *   unload=S      the same is unloaded
 *   capture=S     its kernel is captured and launched as a graph
 *   fault=S       its kernel that goes wrong
 *   loads=N       N threads load all images at once
 *   limit=L,V     a limit of the context
 *   maps          how often the library of images is mapped
 *   wrong         loads and unloads what is none */
#include "driver_steps.h"

#include <pthread.h>
#include <string.h>

#define P(pointer) ((uint64_t)(uintptr_t)(pointer))
#define MAX_SLOTS 256
#define COUNT 64
#define NAME_SIZE 64
#define PRESERVED 1
#define MAX_THREADS 16
#define MAX_IMAGES 16

struct fat {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
};

struct wrapper {
	uint32_t magic, version;
	const struct fat *data;
	const void *more;
};

static struct wrapper *wrappers;
static int image_count, plugin_number;

static struct slot {
	uint64_t handle;
	int image, plugin;
	int is_module;
} slots[MAX_SLOTS];
static int slot_count;

int steps_image_count(void)
{
	return image_count;
}

int steps_slot_count(void)
{
	return slot_count;
}

static void open_images(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);

	if (!library) {
		printf("images: %s\n", dlerror());
		exit(77);
	}
	wrappers = dlsym(library, "image_wrappers");
	image_count = *(int *)dlsym(library, "image_count");
	plugin_number = *(int *)dlsym(library, "image_plugin_number");
}

static void add(const char *what, int image, uint64_t handle, int is_module, int rc)
{
	int slot = slot_count < MAX_SLOTS ? slot_count++ : MAX_SLOTS - 1;

	slots[slot] = (struct slot){rc ? 0 : handle, image, plugin_number, is_module};
	printf("%s %d: %d, slot %d %s\n", what, image, rc, slot,
		slots[slot].handle ? "filled" : "empty");
}

static uint64_t size_of(const struct fat *fat)
{
	return fat->header_size + fat->size;
}

static struct fat *copy_of(int image)
{
	const struct fat *fat = wrappers[image].data;
	struct fat *copy = malloc(size_of(fat));

	memcpy(copy, fat, size_of(fat));
	return copy;
}

static void drop(struct fat *copy)
{
	memset(copy, 0xaa, size_of(copy) < NAME_SIZE ? sizeof(*copy) : NAME_SIZE);
	free(copy);
}

static int load_library(uint64_t *ret_handle, const void *code, int option, uint64_t value)
{
	uint64_t values[] = {value};

	if (option < 0)
		return STEPS_CALL(cuLibraryLoadData, P(ret_handle), P(code), UINT64_C(0),
			UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0));
	return STEPS_CALL(cuLibraryLoadData, P(ret_handle), P(code), UINT64_C(0), UINT64_C(0),
		UINT64_C(0), P(&option), P(values), UINT64_C(1));
}

/* A copy on the heap with a library option that has no value, or its text, in which there is
 * nothing to compile, with one JIT option. */
static int load_copy(uint64_t *ret_handle, int image, int jit, uint64_t value)
{
	struct fat *copy = copy_of(image);
	int option = PRESERVED;
	uint64_t values[] = {value};
	int rc;

	if (jit < 0)
		return STEPS_CALL(cuLibraryLoadData, P(ret_handle), P(copy), UINT64_C(0),
			UINT64_C(0), UINT64_C(0), P(&option), UINT64_C(0), UINT64_C(1));
	rc = STEPS_CALL(cuLibraryLoadData, P(ret_handle), P(copy + 1), P(&jit), P(values),
		UINT64_C(1), UINT64_C(0), UINT64_C(0), UINT64_C(0));
	drop(copy);
	return rc;
}

static void load(const char *what, int image, const char *options)
{
	uint64_t handle = 0;
	int rc, is_module = 0;

	if (image < 0 || image >= image_count) {
		printf("no image %d\n", image);
		return;
	}
	if (!strcmp(what, "lib")) {
		rc = load_library(&handle, &wrappers[image], PRESERVED, 1);
	} else if (!strcmp(what, "optlib")) {
		rc = load_library(&handle, &wrappers[image], atoi(options),
			strtoull(strchr(options, ',') + 1, NULL, 10));
	} else if (!strcmp(what, "keptlib")) {
		rc = load_library(&handle, copy_of(image), PRESERVED, 1);
	} else if (!strcmp(what, "novalues")) {
		rc = load_copy(&handle, image, -1, 0);
	} else if (!strcmp(what, "jitlib")) {
		rc = load_copy(&handle, image, atoi(options),
			strtoull(strchr(options, ',') + 1, NULL, 10));
	} else if (!strcmp(what, "heaplib")) {
		struct fat *copy = copy_of(image);

		rc = load_library(&handle, copy, -1, 0);
		drop(copy);
	} else {
		is_module = 1;
		if (!strcmp(what, "mod")) {
			rc = STEPS_CALL(cuModuleLoadData, P(&handle), P(&wrappers[image]));
		} else if (!strcmp(what, "modfat")) {
			rc = STEPS_CALL(cuModuleLoadFatBinary, P(&handle), P(wrappers[image].data));
		} else if (!strcmp(what, "modex")) {
			rc = STEPS_CALL(cuModuleLoadDataEx, P(&handle), P(&wrappers[image]),
				UINT64_C(0), UINT64_C(0), UINT64_C(0));
		} else {
			struct fat *copy = copy_of(image);

			rc = STEPS_CALL(cuModuleLoadData, P(&handle), P(copy));
			drop(copy);
		}
	}
	add(what, image, handle, is_module, rc);
}

static struct slot *slot_of(int number)
{
	static struct slot empty;

	return number >= 0 && number < slot_count ? &slots[number] : &empty;
}

/* The function of an operation's kernel; of a library its kernel, or what that is in the context.
 */
static int find(const struct slot *slot, const char *operation, int is_function, uint64_t *ret)
{
	char name[NAME_SIZE];
	int rc;

	snprintf(name, sizeof(name), "%s_%d_%d", operation, slot->plugin, slot->image);
	if (slot->is_module)
		return STEPS_CALL(cuModuleGetFunction, P(ret), slot->handle, P(name));
	rc = STEPS_CALL(cuLibraryGetKernel, P(ret), slot->handle, P(name));
	if (!rc && is_function)
		rc = STEPS_CALL(cuKernelGetFunction, P(ret), *ret);
	return rc;
}

static int launch(uint64_t function, uint64_t stream, void **parameters)
{
	return STEPS_CALL(cuLaunchKernel, function, UINT64_C(1), UINT64_C(1), UINT64_C(1),
		UINT64_C(32), UINT64_C(1), UINT64_C(1), UINT64_C(0), stream, P(parameters),
		UINT64_C(0));
}

static void use(const char *what, int number)
{
	const struct slot *slot = slot_of(number);
	uint32_t host[COUNT] = {0}, value = (uint32_t)number + 3, factor = 5, count = COUNT;
	uint64_t memory = 0, fill = 0, scale = 0;
	void *first[] = {&memory, &value, &count}, *second[] = {&memory, &memory, &factor, &count};
	int codes[7], wrong = 0, is_function = !strcmp(what, "func");

	codes[0] = STEPS_CALL(cuMemAlloc_v2, P(&memory), sizeof(host));
	codes[1] = find(slot, "fill", is_function, &fill);
	codes[2] = find(slot, "scale", is_function, &scale);
	codes[3] = launch(fill, 0, first);
	codes[4] = launch(scale, 0, second);
	codes[5] = STEPS_CALL(cuMemcpyDtoH_v2, P(host), memory, sizeof(host));
	codes[6] = STEPS_CALL(cuMemFree_v2, memory);
	for (int i = 0; i < COUNT; i++)
		wrong += host[i] != value * factor;
	printf("%s %d:", what, number);
	for (int i = 0; i < 7; i++)
		printf(" %d", codes[i]);
	printf(", %d wrong\n", wrong);
}

static void capture(int number)
{
	const struct slot *slot = slot_of(number);
	uint32_t host[COUNT] = {0}, value = (uint32_t)number + 11, count = COUNT;
	uint64_t memory = 0, fill = 0, stream = 0, graph = 0, program = 0;
	void *parameters[] = {&memory, &value, &count};
	int codes[9], wrong = 0;

	codes[0] = STEPS_CALL(cuMemAlloc_v2, P(&memory), sizeof(host));
	codes[1] = STEPS_CALL(cuStreamCreate, P(&stream), UINT64_C(0));
	codes[2] = STEPS_CALL(cuStreamBeginCapture_v2, stream, UINT64_C(0));
	codes[3] = find(slot, "fill", 0, &fill);
	codes[4] = launch(fill, stream, parameters);
	codes[5] = STEPS_CALL(cuStreamEndCapture, stream, P(&graph));
	codes[6] = STEPS_CALL(cuGraphInstantiateWithFlags, P(&program), graph, UINT64_C(0));
	codes[7] = STEPS_CALL(cuGraphLaunch, program, stream);
	codes[8] = STEPS_CALL(cuMemcpyDtoH_v2, P(host), memory, sizeof(host));
	STEPS_CALL(cuGraphExecDestroy, program);
	STEPS_CALL(cuGraphDestroy, graph);
	STEPS_CALL(cuStreamDestroy_v2, stream);
	STEPS_CALL(cuMemFree_v2, memory);
	for (int i = 0; i < COUNT; i++)
		wrong += host[i] != value;
	printf("capture %d:", number);
	for (int i = 0; i < 9; i++)
		printf(" %d", codes[i]);
	printf(", %d wrong\n", wrong);
}

static void unload(int number)
{
	struct slot *slot = slot_of(number);
	int rc = slot->is_module ? STEPS_CALL(cuModuleUnload, slot->handle)
				 : STEPS_CALL(cuLibraryUnload, slot->handle);

	printf("unload %d: %d\n", number, rc);
	/* A handle may come again: then it is another slot's. */
	if (!rc)
		slot->handle = 0;
}

/* The same kernel asked for twice is the same. */
static void ask_twice(int number)
{
	const struct slot *slot = slot_of(number);
	uint64_t a = 0, b = 0, owner = 0;
	unsigned int count = 77;
	int codes[4];

	codes[0] = find(slot, "spin", 0, &a);
	codes[1] = find(slot, "spin", 0, &b);
	if (slot->is_module) {
		codes[2] = STEPS_CALL(cuFuncGetModule, P(&owner), a);
		codes[3] = STEPS_CALL(cuModuleGetFunctionCount, P(&count), slot->handle);
	} else {
		codes[2] = STEPS_CALL(cuKernelGetLibrary, P(&owner), a);
		codes[3] = STEPS_CALL(cuLibraryGetKernelCount, P(&count), slot->handle);
	}
	printf("twice %d: %d %d %s, owner %d %s, count %d %u\n", number, codes[0], codes[1],
		a == b ? "same" : "different", codes[2],
		!codes[2] && owner == slot->handle ? "right" : "none", codes[3], count);
}

void steps_forget_modules(void)
{
	for (int i = 0; i < slot_count; i++)
		if (slots[i].is_module)
			slots[i].handle = 0;
}

static void go_wrong(int number)
{
	const struct slot *slot = slot_of(number);
	uint64_t function = 0;
	int codes[3];

	codes[0] = find(slot, "fault", 0, &function);
	codes[1] = launch(function, 0, NULL);
	codes[2] = STEPS_CALL(cuCtxSynchronize, 0);
	printf("fault %d: %d %d %d\n", number, codes[0], codes[1], codes[2]);
}

static uint64_t loaded[MAX_THREADS][MAX_IMAGES];

static void *load_all(void *row)
{
	int failed = 0;

	for (int i = 0; i < image_count; i++)
		failed += load_library(&((uint64_t *)row)[i], &wrappers[i], PRESERVED, 1) != 0;
	return (void *)(intptr_t)failed;
}

/* No two of them may get the same library. */
static void load_at_once(int count)
{
	pthread_t threads[MAX_THREADS];
	int failed = 0, same = 0, unloaded = 0;

	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, load_all, loaded[i]);
	for (int i = 0; i < count; i++) {
		void *outcome;

		pthread_join(threads[i], &outcome);
		failed += (int)(intptr_t)outcome;
	}
	for (int i = 0; i < count * image_count; i++)
		for (int j = 0; j < i; j++)
			same += loaded[i / image_count][i % image_count] ==
				loaded[j / image_count][j % image_count];
	for (int i = 0; i < count * image_count; i++)
		unloaded += !STEPS_CALL(cuLibraryUnload, loaded[i / image_count][i % image_count]);
	printf("loads: %d failed, %d the same, %d unloaded\n", failed, same, unloaded);
}

static void set_limit(const char *value)
{
	uint64_t limit = strtoull(value, NULL, 10), now = 77;
	int rc = STEPS_CALL(cuCtxSetLimit, limit, strtoull(strchr(value, ',') + 1, NULL, 10));

	printf("limit: %d", rc);
	rc = STEPS_CALL(cuCtxGetLimit, P(&now), limit);
	printf(", %d %d\n", rc, (int)now);
}

static void show_maps(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	while (maps && fgets(line, sizeof(line), maps))
		count += strstr(line, "image_plugin") != NULL;
	if (maps)
		fclose(maps);
	printf("maps: %d\n", count);
}

static void do_wrong(void)
{
	static const char garbage[] = "garbage, at that, and long enough to be looked at";
	uint64_t handle = 77;
	int codes[6];

	codes[0] = STEPS_CALL(cuLibraryLoadData, P(&handle), UINT64_C(0), UINT64_C(0), UINT64_C(0),
		UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0));
	codes[1] = STEPS_CALL(cuLibraryLoadData, UINT64_C(0), P(&wrappers[0]), UINT64_C(0),
		UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0), UINT64_C(0));
	codes[2] = STEPS_CALL(cuModuleLoadData, P(&handle), P(garbage));
	codes[3] = STEPS_CALL(cuModuleLoadData, UINT64_C(0), P(&wrappers[0]));
	codes[4] = STEPS_CALL(cuLibraryUnload, UINT64_C(0));
	codes[5] = STEPS_CALL(cuModuleUnload, P(&handle));
	printf("wrong");
	for (int i = 0; i < 6; i++)
		printf(" %d", codes[i]);
	printf(", %d\n", (int)handle);
}

int steps_images(const char *step, const char *value)
{
	static const char *const loads[] = {"lib", "optlib", "keptlib", "heaplib", "novalues",
		"jitlib", "mod", "modfat", "modex", "heapmod"};
	const char *comma = strchr(value, ',');

	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		if (!strcmp(step, loads[i])) {
			load(step, atoi(value), comma ? comma + 1 : "0,0");
			return 1;
		}
	if (!strcmp(step, "images"))
		open_images(value);
	else if (!strcmp(step, "launch") || !strcmp(step, "func"))
		use(step, atoi(value));
	else if (!strcmp(step, "twice"))
		ask_twice(atoi(value));
	else if (!strcmp(step, "capture"))
		capture(atoi(value));
	else if (!strcmp(step, "unload"))
		unload(atoi(value));
	else if (!strcmp(step, "fault"))
		go_wrong(atoi(value));
	else if (!strcmp(step, "loads"))
		load_at_once(atoi(value));
	else if (!strcmp(step, "limit"))
		set_limit(value);
	else if (!strcmp(step, "maps"))
		show_maps();
	else if (!strcmp(step, "wrong"))
		do_wrong();
	else
		return 0;
	return 1;
}
