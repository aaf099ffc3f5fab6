/* Stepping aside. Runs once, in the constructor, before the program's other threads exist; must
 * leave the objects' pages as they were mapped.
 *
 * How: one byte of our DT_SONAME and of the alias's is overwritten, and the bloom filter of our
 * .gnu.hash zeroed, so that the loader's symbol search passes us by. glibc keeps its own copy of a
 * SONAME once somebody has been matched by it, so this works only before anybody was. */
#include "preload/step_aside.h"

#include "base/log.h"
#include "driver/loaded.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUR_SONAME "libcuda.so.1"
#define ALIAS_SONAME "libcuda.so"
#define ALIAS_FILE "libhearth-alias.so"

struct scene {
	struct loaded self, alias;
	bool has_self, has_alias, is_bound;
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct scene *scene = data;
	const char *slash = strrchr(info->dlpi_name, '/');
	struct loaded object;

	if (loaded_from_phdr(info, &object))
		return 0;
	if (object.dynamic == _DYNAMIC) {
		scene->self = object;
		scene->has_self = true;
	} else if (object.soname && !strcmp(object.soname, ALIAS_SONAME) &&
		   !strcmp(slash ? slash + 1 : info->dlpi_name, ALIAS_FILE)) {
		scene->alias = object;
		scene->has_alias = true;
	} else if (loaded_needs(&object, OUR_SONAME) || loaded_needs(&object, ALIAS_SONAME)) {
		scene->is_bound = true;
	}
	return 0;
}

/* The pages around [start, start + size), made writable and then what they were: read-only. */
static bool set_writable(const void *start, size_t size, bool is_writable)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)start & ~(page - 1);
	uintptr_t end = ((uintptr_t)start + size + page - 1) & ~(page - 1);

	return !mprotect(
		(void *)first, end - first, is_writable ? PROT_READ | PROT_WRITE : PROT_READ);
}

static void hide_name(const struct loaded *object)
{
	char *first = (char *)(uintptr_t)object->soname;

	if (!first || !set_writable(first, 1, true))
		return;
	*first = '-';
	set_writable(first, 1, false);
}

static void hide_symbols(const struct loaded *object)
{
	uint64_t *bloom;
	size_t size;

	if (!object->gnu_hash)
		return;
	bloom = (uint64_t *)(uintptr_t)(object->gnu_hash + 4);
	size = object->gnu_hash[2] * sizeof(*bloom);
	if (!set_writable(bloom, size, true))
		return;
	memset(bloom, 0, size);
	set_writable(bloom, size, false);
}

int step_aside(void)
{
	struct scene scene = {0};

	dl_iterate_phdr(look, &scene);
	if (scene.is_bound || !scene.has_self) {
		log_debug("stepping aside is not possible: a loaded object needs " OUR_SONAME);
		return STEP_ASIDE_BOUND;
	}
	hide_name(&scene.self);
	hide_symbols(&scene.self);
	if (scene.has_alias)
		hide_name(&scene.alias);
	log_debug("stepped aside");
	return 0;
}
