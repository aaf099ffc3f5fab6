/* Reading loaded ELF objects. Runs in the user's program, also in its constructor and inside a
 * handler; must never take the loader's main lock (no dl* call), allocate, or trust that an
 * object's tables are all there. */
#include "driver/loaded.h"

#include "base/at_start.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Of a symbol's version index: not the default version of its name. */
#define VERSION_HIDDEN 0x8000U

/* glibc has relocated the pointers in a loaded object's dynamic section, except in the vDSO's and
 * in those that it may not write: smaller than the base means still relative. */
AT_START static uintptr_t absolute(const struct loaded *object, uintptr_t value)
{
	return value < object->base ? object->base + value : value;
}

AT_START static int read_dynamic(struct loaded *object)
{
	uintptr_t soname = 0;
	bool has_soname = false;

	if (!object->dynamic)
		return -ENOEXEC;
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++) {
		uintptr_t value = absolute(object, entry->d_un.d_ptr);

		switch (entry->d_tag) {
		case DT_STRTAB:
			object->strings = (const char *)value;
			break;
		case DT_SYMTAB:
			object->symbols = (const ElfW(Sym) *)value;
			break;
		case DT_GNU_HASH:
			object->gnu_hash = (const uint32_t *)value;
			break;
		case DT_SONAME:
			soname = entry->d_un.d_val;
			has_soname = true;
			break;
		}
	}
	if (!object->strings || !object->symbols)
		return -ENOEXEC;
	if (has_soname)
		object->soname = object->strings + soname;
	return 0;
}

int loaded_from_map(const struct link_map *map, struct loaded *ret_object)
{
	*ret_object = (struct loaded){.base = map->l_addr, .dynamic = map->l_ld};
	return read_dynamic(ret_object);
}

AT_START int loaded_from_phdr(const struct dl_phdr_info *info, struct loaded *ret_object)
{
	*ret_object = (struct loaded){.base = info->dlpi_addr};
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_DYNAMIC)
			ret_object->dynamic = (const ElfW(Dyn) *)start;
		if (segment->p_type != PT_LOAD)
			continue;
		if (!ret_object->start || start < ret_object->start)
			ret_object->start = start;
		if (start + segment->p_memsz > ret_object->end)
			ret_object->end = start + segment->p_memsz;
	}
	return read_dynamic(ret_object);
}

struct search {
	const char *soname;
	uintptr_t address;
	struct loaded *ret_object;
	char *ret_name;
	size_t size;
	bool is_found;
};

static bool holds(const struct dl_phdr_info *info, uintptr_t address)
{
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
			address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz)
			return true;
	}
	return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct loaded object;

	if (search->address && !holds(info, search->address))
		return 0;
	if (search->ret_name) {
		const char *slash = strrchr(info->dlpi_name, '/');
		const char *base = slash ? slash + 1 : info->dlpi_name;
		size_t length = strnlen(base, search->size - 1);

		memcpy(search->ret_name, base, length);
		search->ret_name[length] = '\0';
		search->is_found = true;
		return 1;
	}
	if (loaded_from_phdr(info, &object))
		return 0;
	if (search->soname && (!object.soname || strcmp(object.soname, search->soname)))
		return 0;
	*search->ret_object = object;
	search->is_found = true;
	return 1;
}

int loaded_find(const char *soname, struct loaded *ret_object)
{
	struct search search = {.soname = soname, .ret_object = ret_object};

	dl_iterate_phdr(visit, &search);
	return search.is_found ? 0 : -ENOENT;
}

int loaded_find_address(const void *address, struct loaded *ret_object)
{
	struct search search = {.address = (uintptr_t)address, .ret_object = ret_object};

	dl_iterate_phdr(visit, &search);
	return search.is_found ? 0 : -ENOENT;
}

int loaded_file_name(const void *address, char *ret_name, size_t size)
{
	struct search search = {.address = (uintptr_t)address, .ret_name = ret_name, .size = size};
	char path[4096];
	const char *slash;
	ssize_t length;

	dl_iterate_phdr(visit, &search);
	if (!search.is_found)
		return -ENOENT;
	if (*ret_name)
		return 0;
	/* The program itself has no name in the loader's list. */
	length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	if (length <= 0)
		return 0;
	path[length] = '\0';
	slash = strrchr(path, '/');
	length = (ssize_t)strnlen(slash ? slash + 1 : path, size - 1);
	memcpy(ret_name, slash ? slash + 1 : path, (size_t)length);
	ret_name[length] = '\0';
	return 0;
}

AT_START bool loaded_needs(const struct loaded *object, const char *name)
{
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_NEEDED && !strcmp(object->strings + entry->d_un.d_val, name))
			return true;
	return false;
}

const char *loaded_needed(const struct loaded *object, unsigned int number)
{
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_NEEDED && number-- == 0)
			return object->strings + entry->d_un.d_val;
	return NULL;
}

/* A table of the dynamic section that is needed too seldom to be kept; 0 where there is none. */
static uintptr_t find_table(const struct loaded *object, ElfW(Sxword) tag)
{
	for (const ElfW(Dyn) *entry = object->dynamic; entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == tag)
			return absolute(object, entry->d_un.d_ptr);
	return 0;
}

/* The hash of DT_GNU_HASH: Bernstein's, times 33. */
static uint32_t hash_name(const char *name)
{
	uint32_t hash = 5381;

	for (; *name; name++)
		hash = hash * 33 + (unsigned char)*name;
	return hash;
}

/* The version index that the object gives to a version's name; 0 where it defines none such. */
static unsigned int version_index(const struct loaded *object, const char *version)
{
	const char *definition = (const char *)find_table(object, DT_VERDEF);

	while (definition) {
		const ElfW(Verdef) *entry = (const ElfW(Verdef) *)definition;
		const ElfW(Verdaux) *name = (const ElfW(Verdaux) *)(definition + entry->vd_aux);

		if (!strcmp(object->strings + name->vda_name, version))
			return entry->vd_ndx;
		if (!entry->vd_next)
			break;
		definition += entry->vd_next;
	}
	return 0;
}

/* The entry of that name and, unless `version` is NULL, of that version. */
static const ElfW(Sym) *
	find_entry(const struct loaded *object, const char *name, const char *version)
{
	const ElfW(Versym) *versions = (const ElfW(Versym) *)find_table(object, DT_VERSYM);
	unsigned int wanted = version ? version_index(object, version) : 0;
	const uint32_t *table = object->gnu_hash, *buckets, *chain;
	const ElfW(Addr) * bloom;
	uint32_t hash = hash_name(name), index;
	ElfW(Addr) word;

	if (!table || !table[0] || !table[2] || (version && (!versions || !wanted)))
		return NULL;
	bloom = (const ElfW(Addr) *)(table + 4);
	buckets = (const uint32_t *)(bloom + table[2]);
	chain = buckets + table[0];
	word = bloom[hash / 64 % table[2]];
	if (!(word >> hash % 64 & word >> (hash >> table[3]) % 64 & 1))
		return NULL;
	index = buckets[hash % table[0]];
	if (index < table[1])
		return NULL;
	for (;; index++) {
		uint32_t found = chain[index - table[1]];
		const ElfW(Sym) *symbol = &object->symbols[index];

		if ((found | 1) == (hash | 1) && symbol->st_shndx != SHN_UNDEF &&
			!strcmp(object->strings + symbol->st_name, name) &&
			(!version || (versions[index] & ~VERSION_HIDDEN) == wanted))
			return symbol;
		if (found & 1)
			return NULL;
	}
}

const ElfW(Sym) * loaded_symbol_entry(const struct loaded *object, const char *name)
{
	return find_entry(object, name, NULL);
}

void *loaded_symbol_version(const struct loaded *object, const char *name, const char *version)
{
	const ElfW(Sym) *symbol = find_entry(object, name, version);
	uintptr_t address;

	if (!symbol || !symbol->st_value)
		return NULL;
	address = object->base + symbol->st_value;
	if (ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC)
		return ((void *(*)(void))address)();
	return (void *)address;
}

void *loaded_symbol(const struct loaded *object, const char *name)
{
	return loaded_symbol_version(object, name, NULL);
}
