/* Stepping aside. Runs once, in the constructor, before the program's other threads exist; must
 * leave the objects' pages as they were mapped.
 *
 * How: the SONAMEs of both our objects are pointed at the empty text (.dynamic is writable: both
 * are linked without RELRO), and the bloom filter of our .gnu.hash is zeroed, so that the loader's
 * search for a name and for a symbol passes us by. glibc keeps its own copy of a SONAME once
 * somebody has been matched by it, so this works only before anybody was: not where a constructor
 * that ran before ours has opened the driver, nor with LD_PROFILE, which has it keep all SONAMEs.
 */
#include "preload/step_aside.h"

#include "base/at_start.h"
#include "base/log.h"
#include "driver/known_name.h"
#include "driver/loaded.h"

#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUR_SONAME "libcuda.so.1"
#define ALIAS_SONAME "libcuda.so"
/* x86-64 has no other. */
#define PAGE_BYTES UINT64_C(4096)
#define OUR_FILE "libhearth.so"

struct scene {
	struct loaded self, alias;
	const struct link_map *maps; /* all loaded objects' */
	bool has_self, has_alias, is_bound;
};

/* The program's own DT_DEBUG leads to the loader's list. */
AT_START static const struct link_map *find_maps(const struct dl_phdr_info *program)
{
	const ElfW(Dyn) *entry = NULL;

	for (size_t i = 0; i < program->dlpi_phnum; i++)
		if (program->dlpi_phdr[i].p_type == PT_DYNAMIC)
			entry = (const ElfW(Dyn) *)(program->dlpi_addr +
						    program->dlpi_phdr[i].p_vaddr);
	for (; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_DEBUG && entry->d_un.d_ptr)
			return ((const struct r_debug *)entry->d_un.d_ptr)->r_map;
	return NULL;
}

/* Whether somebody has been matched by the object's SONAME. */
AT_START static bool is_name_kept(const struct link_map *map, const struct loaded *object)
{
	const struct full_map *full;

	while (map && map->l_ld != object->dynamic)
		map = map->l_next;
	full = known_name_map(map);
	if (!full)
		return false;
	for (const struct known_name *name = full->names; name; name = name->next)
		if (!strcmp(name->text, object->soname))
			return true;
	return false;
}

AT_START static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct scene *scene = data;
	struct loaded object;

	if (!scene->maps)
		scene->maps = find_maps(info);
	if (loaded_from_phdr(info, &object))
		return 0;
	if (object.dynamic == _DYNAMIC) {
		scene->self = object;
		scene->has_self = true;
	} else if (object.soname && !strcmp(object.soname, ALIAS_SONAME) &&
		   loaded_needs(&object, OUR_FILE)) {
		scene->alias = object;
		scene->has_alias = true;
	} else if (loaded_needs(&object, OUR_SONAME) || loaded_needs(&object, ALIAS_SONAME)) {
		scene->is_bound = true;
	}
	return 0;
}

/* Offset 0 of a string table is the empty text; no request is for that. */
AT_START static void hide_name(const struct loaded *object)
{
	for (ElfW(Dyn) *entry = (ElfW(Dyn) *)(uintptr_t)object->dynamic; entry->d_tag != DT_NULL;
		entry++)
		if (entry->d_tag == DT_SONAME)
			entry->d_un.d_val = 0;
}

AT_START static void hide_symbols(const struct loaded *object)
{
	uint64_t *bloom;
	uintptr_t first, end;

	if (!object->gnu_hash)
		return;
	bloom = (uint64_t *)(uintptr_t)(object->gnu_hash + 4);
	first = (uintptr_t)bloom & ~(PAGE_BYTES - 1);
	end = ((uintptr_t)(bloom + object->gnu_hash[2]) + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
	if (mprotect((void *)first, end - first, PROT_READ | PROT_WRITE))
		return;
	for (volatile uint64_t *word = bloom; word < bloom + object->gnu_hash[2]; word++)
		*word = 0;
	mprotect((void *)first, end - first, PROT_READ);
}

AT_START int step_aside(void)
{
	struct scene scene = {0};

	dl_iterate_phdr(look, &scene);
	if (scene.is_bound || !scene.has_self) {
		log_debug("stepping aside is not possible: a loaded object needs " OUR_SONAME);
		return STEP_ASIDE_BOUND;
	}
	if (is_name_kept(scene.maps, &scene.self) ||
		(scene.has_alias && is_name_kept(scene.maps, &scene.alias))) {
		log_debug("stepping aside is not possible: " OUR_SONAME " has been opened");
		return STEP_ASIDE_BOUND;
	}
	hide_name(&scene.self);
	hide_symbols(&scene.self);
	if (scene.has_alias)
		hide_name(&scene.alias);
	log_debug("stepped aside");
	return 0;
}
