/* Redirecting the import slots of one loaded object. Runs in the user's process, on the thread that
 * opened the object, before anybody calls into it. Must never take the loader's lock (so no
 * dl_iterate_phdr) and never leave a page more writable than it found it. */
#include "driver/imports.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct relocations {
	const ElfW(Rela) * table;
	size_t count;
};

struct object {
	const struct link_map *map;
	const ElfW(Sym) * symbols;
	const char *strings;
	struct relocations plt, other;
	uintptr_t relro_start,
		relro_end; /* read-only after relocation; page-aligned, empty if none */
};

static void read_relro(struct object *object)
{
	const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)object->map->l_addr;
	const ElfW(Phdr) * segment;
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	/* Where the first segment does not start at address 0 there is no header to be read here.
	 */
	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG))
		return;
	segment = (const ElfW(Phdr) *)(object->map->l_addr + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++) {
		if (segment[i].p_type != PT_GNU_RELRO)
			continue;
		object->relro_start = (object->map->l_addr + segment[i].p_vaddr) & ~(page - 1);
		object->relro_end =
			(object->map->l_addr + segment[i].p_vaddr + segment[i].p_memsz) &
			~(page - 1);
	}
}

static int read_object(const struct link_map *map, struct object *ret_object)
{
	struct object object = {.map = map};

	for (const ElfW(Dyn) *entry = map->l_ld; entry && entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_SYMTAB:
			object.symbols = (const ElfW(Sym) *)entry->d_un.d_ptr;
			break;
		case DT_STRTAB:
			object.strings = (const char *)entry->d_un.d_ptr;
			break;
		case DT_JMPREL:
			object.plt.table = (const ElfW(Rela) *)entry->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			object.plt.count = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_RELA:
			object.other.table = (const ElfW(Rela) *)entry->d_un.d_ptr;
			break;
		case DT_RELASZ:
			object.other.count = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		}
	}
	if (!object.symbols || !object.strings)
		return -ENOEXEC;
	read_relro(&object);
	*ret_object = object;
	return 0;
}

static int write_slot(const struct object *object, uintptr_t slot, void *value)
{
	uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)(slot & ~(page_size - 1));
	bool is_relro = slot >= object->relro_start && slot < object->relro_end;

	if (is_relro && mprotect(page, page_size, PROT_READ | PROT_WRITE))
		return -errno;
	__atomic_store_n((void **)slot, value, __ATOMIC_RELEASE);
	if (is_relro && mprotect(page, page_size, PROT_READ))
		return -errno;
	return 0;
}

static int redirect_in(const struct object *object, const struct relocations *relocations,
	const struct import_hook *hooks, size_t count)
{
	int changed = 0;

	for (size_t i = 0; relocations->table && i < relocations->count; i++) {
		const ElfW(Rela) *entry = &relocations->table[i];
		unsigned long type = ELF64_R_TYPE(entry->r_info);
		const char *name;

		if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
			continue;
		name = object->strings + object->symbols[ELF64_R_SYM(entry->r_info)].st_name;
		for (size_t k = 0; k < count; k++) {
			int error;

			if (strcmp(name, hooks[k].name))
				continue;
			error = write_slot(object, object->map->l_addr + entry->r_offset,
				hooks[k].replacement);
			if (error)
				return error;
			changed++;
		}
	}
	return changed;
}

int imports_redirect(const struct link_map *map, const struct import_hook *hooks, size_t count)
{
	struct object object;
	int error = read_object(map, &object), plt, other;

	if (error)
		return error;
	plt = redirect_in(&object, &object.plt, hooks, count);
	if (plt < 0)
		return plt;
	other = redirect_in(&object, &object.other, hooks, count);
	return other < 0 ? other : plt + other;
}
