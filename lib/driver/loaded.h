/* Loaded ELF objects, read in memory without the loader's main lock: dl_iterate_phdr takes another
 * one, which is never held while constructors run. Nothing here allocates. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loaded {
	uintptr_t base;       /* load address: what addresses in the file are relative to */
	uintptr_t start, end; /* the addresses it takes; 0 where made from a link map */
	const ElfW(Dyn) * dynamic;
	const char *strings;
	const ElfW(Sym) * symbols;
	const uint32_t *gnu_hash; /* NULL where the object has none */
	const char *soname;       /* NULL where it has none */
};

/* 0, or -ENOEXEC where the object has no usable dynamic section. */
int loaded_from_map(const struct link_map *map, struct loaded *ret_object);
int loaded_from_phdr(const struct dl_phdr_info *info, struct loaded *ret_object);

/* The first loaded object whose SONAME is `soname`; 0 or -ENOENT. */
int loaded_find(const char *soname, struct loaded *ret_object);

/* The object that holds an address; 0 or -ENOENT. */
int loaded_find_address(const void *address, struct loaded *ret_object);

/* Same, and the base name of the file it was loaded from (the program itself: that of its
 * /proc/self/exe), cut to what fits. 0 or -ENOENT. */
int loaded_file_name(const void *address, char *ret_name, size_t size);

/* True where the object's NEEDED list has that name. */
bool loaded_needs(const struct loaded *object, const char *name);

/* The name in the object's NEEDED entry of that number, counted from 0; NULL beyond the last. */
const char *loaded_needed(const struct loaded *object, unsigned int number);

/* The address of a symbol that the object itself defines, of whatever version (the default one
 * where it has several); NULL where there is none. An indirect function (IFUNC) is resolved. */
void *loaded_symbol(const struct loaded *object, const char *name);

/* Same, of exactly that symbol version; NULL for the version means any. */
void *loaded_symbol_version(const struct loaded *object, const char *name, const char *version);

/* The object's own symbol-table entry, or NULL. */
const ElfW(Sym) * loaded_symbol_entry(const struct loaded *object, const char *name);
