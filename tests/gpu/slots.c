/* Walks a loaded library's dynamic relocations. Runs in an experiment's own process on the main
 * thread; must never be linked into anything that users run. */
#include "slots.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct tables {
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Rela) * relocations[2]; /* of data, of calls */
	size_t counts[2];
};

static void tables_read(struct link_map *map, struct tables *ret_tables)
{
	struct tables tables = {0};

	for (ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
		switch (entry->d_tag) {
		case DT_SYMTAB:
			tables.symbols = (void *)entry->d_un.d_ptr;
			break;
		case DT_STRTAB:
			tables.strings = (void *)entry->d_un.d_ptr;
			break;
		case DT_RELA:
			tables.relocations[0] = (void *)entry->d_un.d_ptr;
			break;
		case DT_RELASZ:
			tables.counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		case DT_JMPREL:
			tables.relocations[1] = (void *)entry->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			tables.counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
			break;
		}
	}
	*ret_tables = tables;
}

void slots_each(
	struct link_map *map, void (*visit)(const struct slot *slot, void *data), void *data)
{
	struct tables tables;

	tables_read(map, &tables);
	for (int table = 0; table < 2; table++) {
		for (size_t i = 0; i < tables.counts[table]; i++) {
			const ElfW(Rela) *relocation = &tables.relocations[table][i];
			const ElfW(Sym) *symbol = &tables.symbols[ELF64_R_SYM(relocation->r_info)];
			unsigned type = ELF64_R_TYPE(relocation->r_info);
			struct slot slot = {
				.name = tables.strings + symbol->st_name,
				.word = (void **)(map->l_addr + relocation->r_offset),
				.type = type,
				.kind = ELF64_ST_TYPE(symbol->st_info),
			};

			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT &&
				type != R_X86_64_64)
				continue;
			if (ELF64_R_SYM(relocation->r_info) == 0 || symbol->st_shndx != SHN_UNDEF)
				continue;
			visit(&slot, data);
		}
	}
}

struct redirection {
	const char *name;
	void *to;
	int count;
};

static void redirect_one(const struct slot *slot, void *data)
{
	struct redirection *redirection = data;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *start = (char *)((size_t)slot->word & ~(page - 1));

	if (strcmp(slot->name, redirection->name))
		return;
	if (mprotect(start, 2 * page, PROT_READ | PROT_WRITE) < 0 &&
		mprotect(start, page, PROT_READ | PROT_WRITE) < 0)
		return;
	*slot->word = redirection->to;
	redirection->count++;
}

int slots_redirect(struct link_map *map, const char *name, void *to)
{
	struct redirection redirection = {.name = name, .to = to};

	slots_each(map, redirect_one, &redirection);
	return redirection.count;
}

const char *slots_type_name(unsigned type)
{
	switch (type) {
	case R_X86_64_JUMP_SLOT:
		return "JUMP_SLOT";
	case R_X86_64_GLOB_DAT:
		return "GLOB_DAT";
	case R_X86_64_64:
		return "64";
	}
	return "other";
}
