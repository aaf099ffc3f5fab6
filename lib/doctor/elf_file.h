/* What an ELF file says about how it is loaded. Reads through a descriptor, never maps: a file that
 * shrinks meanwhile, lies about its sizes or is plain noise costs an error, nothing else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_MAX_NEEDED 256
#define ELF_TEXT_SIZE 4096 /* longest string that is believed, PATH_MAX */

struct elf_facts {
	unsigned bits;    /* 32 or 64 */
	unsigned machine; /* e_machine */
	unsigned type;    /* e_type */
	bool is_native;   /* little-endian x86-64 with 64-bit pointers; only then is the rest filled
			   */
	bool is_static;   /* an executable that no loader takes part in */
	char *interpreter; /* PT_INTERP, or NULL */
	char *soname;      /* or NULL, likewise the next two */
	char *rpath;
	char *runpath;
	char *needed[ELF_MAX_NEEDED];
	size_t needed_count;
};

enum { ELF_NO = 1, ELF_DAMAGED = 2 };

/* Reads the facts of an open file. Returns 0; ELF_NO for a file that is no ELF file; ELF_DAMAGED
 * for one whose tables lead outside the file or make no sense; or the read's negative errno.
 * elf_done frees what ret_facts holds; needed only after 0. */
int elf_read(int fd, struct elf_facts *ret_facts);
void elf_done(struct elf_facts *facts);

/* Whether the file defines one of the dynamic symbols in the NULL-terminated list: ret_name is the
 * first of the list that it defines, NULL where it defines none. Same returns as elf_read. */
int elf_defines(int fd, const char *const *names, const char **ret_name);

/* Looks for a string that is an absolute path of a libcuda.so, which a program may hand to dlopen.
 * Returns 0 with *ret_path to be freed (NULL: none found in the first ELF_SCAN_LIMIT bytes), or a
 * negative errno. */
#define ELF_SCAN_LIMIT (64ull << 20)
int elf_driver_path(int fd, char **ret_path);
