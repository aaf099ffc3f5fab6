/* imports: what the driver imports, and which of it cuInit, the retain and the first copy call.
 *
 * A program of its own for a GPU machine (tools/gpu-check explore). Opens a copy of the driver's
 * file, puts a counting thunk into every slot of an imported function, then goes through a
 * program's first steps on a second thread and prints each stage's counts, the loader's calls one
 * by one, the threads, descriptors and mappings that the stage left behind. Usage: imports DRIVER
 */
#include "copy.h"
#include "slots.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	IMPORTS_MAX = 4096,
	THUNK_BYTES = 16,
	STAGES = 4,
};

static const char *const stage_names[STAGES] = {"cuInit", "retain", "first copy", "release"};

/* One imported function: the thunk adds 1 to count and jumps to target. */
struct import {
	const char *name;
	uint64_t count;
	void *target;
	uint64_t before[STAGES + 1];
	unsigned slots, types;
};

static struct import *imports;
static unsigned import_count;
static unsigned char *thunks;
static const char *stage = "open";

static void note(const char *what, const char *text, long number)
{
	/* dprintf, not printf: the stage may hold stdio's locks. */
	dprintf(STDOUT_FILENO, "  [%s, thread %ld] %s(%s, %ld)\n", stage, syscall(SYS_gettid), what,
		text ? text : "NULL", number);
}

static void *watched_dlopen(const char *file, int flags)
{
	note("dlopen", file, flags);
	return dlopen(file, flags);
}

static void *watched_dlsym(void *handle, const char *name)
{
	note("dlsym", name, (long)handle);
	return dlsym(handle, name);
}

static void *watched_dlvsym(void *handle, const char *name, const char *version)
{
	void *address = dlvsym(handle, name, version);

	note(version, name, (long)address);
	return address;
}

static int watched_dlclose(void *handle)
{
	note("dlclose", "handle", (long)handle);
	return dlclose(handle);
}

static int watched_dladdr(const void *address, Dl_info *info)
{
	note("dladdr", "address", (long)address);
	return dladdr(address, info);
}

static int watched_iterate(int (*visit)(struct dl_phdr_info *, size_t, void *), void *data)
{
	note("dl_iterate_phdr", "callback", (long)visit);
	return dl_iterate_phdr(visit, data);
}

static int watched_create(
	pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *data)
{
	double begin = now_ms();
	int rc = pthread_create(thread, attributes, start, data);

	note("pthread_create", "us", (long)((now_ms() - begin) * 1e3));
	return rc;
}

static const struct {
	const char *name;
	void *wrapper;
} watched[] = {
	{"dlopen", watched_dlopen},
	{"dlsym", watched_dlsym},
	{"dlvsym", watched_dlvsym},
	{"dlclose", watched_dlclose},
	{"dladdr", watched_dladdr},
	{"dl_iterate_phdr", watched_iterate},
	{"pthread_create", watched_create},
};

/* lock incq count(%rip); jmp *target(%rip): changes no register, keeps the return address. */
static void thunk_write(unsigned char *thunk, struct import *import)
{
	int32_t to_count = (int32_t)((char *)&import->count - ((char *)thunk + 8));
	int32_t to_target = (int32_t)((char *)&import->target - ((char *)thunk + 14));

	memcpy(thunk, "\xf0\x48\xff\x05", 4);
	memcpy(thunk + 4, &to_count, 4);
	memcpy(thunk + 8, "\xff\x25", 2);
	memcpy(thunk + 10, &to_target, 4);
}

static void install(const struct slot *slot, void *data)
{
	unsigned i = 0;

	(void)data;
	if (slot->kind == STT_OBJECT || !*slot->word)
		return;
	while (i < import_count && strcmp(imports[i].name, slot->name))
		i++;
	if (i == IMPORTS_MAX)
		return;
	if (i == import_count) {
		import_count++;
		imports[i].name = slot->name;
		imports[i].target = *slot->word;
		for (size_t k = 0; k < sizeof(watched) / sizeof(watched[0]); k++) {
			if (!strcmp(watched[k].name, slot->name))
				imports[i].target = watched[k].wrapper;
		}
		thunk_write(thunks + (size_t)i * THUNK_BYTES, &imports[i]);
	}
	imports[i].slots++;
	imports[i].types |= slot->type == R_X86_64_64 ? 2 : 1;
}

static void print_slot(const struct slot *slot, void *data)
{
	(void)data;
	printf("import %s %s %s offset=0x%lx\n", slot->name, slots_type_name(slot->type),
		slot->kind == STT_OBJECT ? "object"
		: slot->kind == STT_FUNC ? "function"
					 : "untyped",
		(unsigned long)slot->word - *(unsigned long *)data);
}

static void print_dynamic(const struct link_map *map)
{
	const char *strings = NULL;

	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_STRTAB)
			strings = (const char *)entry->d_un.d_ptr;
	}
	for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == DT_NEEDED)
			printf("NEEDED %s\n", strings + entry->d_un.d_val);
		else if (entry->d_tag == DT_FLAGS)
			printf("FLAGS 0x%lx\n", entry->d_un.d_val);
		else if (entry->d_tag == DT_FLAGS_1)
			printf("FLAGS_1 0x%lx (NODELETE is 0x%x)\n", entry->d_un.d_val,
				DF_1_NODELETE);
		else if (entry->d_tag == DT_SYMBOLIC)
			printf("SYMBOLIC\n");
	}
}

static void print_links(const char *folder, const char *label)
{
	DIR *stream = opendir(folder);
	struct dirent *entry;

	while (stream && (entry = readdir(stream))) {
		char path[600], target[512];
		ssize_t length;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0)
			continue;
		target[length] = '\0';
		printf("  %s %s -> %s\n", label, entry->d_name, target);
	}
	if (stream)
		closedir(stream);
}

static void print_state(void)
{
	DIR *stream = opendir("/proc/self/task");
	struct dirent *entry;
	char line[512];
	FILE *file;
	int mappings = 0;

	while (stream && (entry = readdir(stream))) {
		char path[400], name[64] = "";

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file && fgets(name, sizeof(name), file))
			printf("  thread %s %s", entry->d_name, name);
		if (file)
			fclose(file);
	}
	if (stream)
		closedir(stream);
	print_links("/proc/self/fd", "descriptor");
	file = fopen("/proc/self/maps", "re");
	while (file && fgets(line, sizeof(line), file))
		mappings += strstr(line, "/dev/nvidia") != NULL;
	if (file)
		fclose(file);
	printf("  mappings of /dev/nvidia*: %d\n", mappings);
}

static void end_stage(int number, int rc, double ms)
{
	printf("stage %s: rc=%d %.1f ms\n  calls:", stage_names[number], rc, ms);
	for (unsigned i = 0; i < import_count; i++) {
		imports[i].before[number + 1] = imports[i].count;
		if (imports[i].count != imports[i].before[number])
			printf(" %s=%lu", imports[i].name,
				imports[i].count - imports[i].before[number]);
	}
	printf("\n");
	print_state();
	fflush(stdout);
}

static void *steps(void *data)
{
	struct driver *driver = data;
	unsigned long memory = 0;
	void *context = NULL;
	int value = 7, rc;
	double start;

	for (unsigned i = 0; i < import_count; i++)
		imports[i].before[0] = imports[i].count;
	stage = stage_names[0];
	start = now_ms();
	rc = driver->init(0);
	end_stage(0, rc, now_ms() - start);
	stage = stage_names[1];
	start = now_ms();
	rc = driver->retain(&context, 0);
	end_stage(1, rc, now_ms() - start);
	stage = stage_names[2];
	start = now_ms();
	driver->set_current(context);
	rc = driver->allocate(&memory, 4096);
	driver->copy_in(memory, &value, sizeof(value));
	end_stage(2, rc, now_ms() - start);
	stage = stage_names[3];
	start = now_ms();
	rc = driver->release(0);
	end_stage(3, rc, now_ms() - start);
	return NULL;
}

int main(int argc, char **argv)
{
	size_t code_bytes = (size_t)IMPORTS_MAX * THUNK_BYTES;
	size_t data_bytes = IMPORTS_MAX * sizeof(struct import);
	struct driver driver;
	double copy_ms, open_ms;
	pthread_t thread;

	if (argc != 2) {
		fprintf(stderr, "usage: imports DRIVER\n");
		return 2;
	}
	if (driver_open_copy(argv[1], &driver, &copy_ms, &open_ms) < 0)
		return 1;
	printf("copy of %s: copied in %.1f ms, opened in %.1f ms\n", argv[1], copy_ms, open_ms);
	thunks = mmap(NULL, code_bytes + data_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (thunks == MAP_FAILED)
		return 1;
	imports = (struct import *)(thunks + code_bytes);
	print_dynamic(driver.map);
	slots_each(driver.map, print_slot, &driver.map->l_addr);
	slots_each(driver.map, install, NULL);
	if (mprotect(thunks, code_bytes, PROT_READ | PROT_EXEC) < 0) {
		perror("mprotect of the thunks");
		return 1;
	}
	for (unsigned i = 0; i < import_count; i++)
		slots_redirect(driver.map, imports[i].name, thunks + (size_t)i * THUNK_BYTES);
	printf("%u imported functions have thunks; state before cuInit:\n", import_count);
	print_state();
	fflush(stdout);
	if (pthread_create(&thread, NULL, steps, &driver))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
