/* Reading ELF files that nobody vouches for. */
#include "doctor/elf_file.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLIPS 5000

/* A small whole ELF file: one load segment over everything, an interpreter, a dynamic section, and
 * a section table with one symbol. */
struct small {
	Elf64_Ehdr header;
	Elf64_Phdr load, interpreter, dynamic;
	Elf64_Dyn entries[8];
	Elf64_Sym symbols[2];
	Elf64_Shdr sections[3];
	char text[256];
};

static const char texts[] = "\0libc.so.6\0libcuda.so.1\0/opt/rp\0$ORIGIN/run\0me.so\0cuInit\0"
			    "/lib64/ld-linux-x86-64.so.2\0/opt/x/libcuda.so.1\0";

/* Where a text lies in the texts. */
static uint64_t at(const char *text)
{
	return (uint64_t)((const char *)memmem(texts, sizeof(texts), text, strlen(text) + 1) -
			  texts);
}

static struct small make(void)
{
	struct small file = {.header = {.e_ident = ELFMAG,
				     .e_type = ET_DYN,
				     .e_machine = EM_X86_64,
				     .e_phoff = offsetof(struct small, load),
				     .e_phentsize = sizeof(Elf64_Phdr),
				     .e_phnum = 3,
				     .e_shoff = offsetof(struct small, sections),
				     .e_shentsize = sizeof(Elf64_Shdr),
				     .e_shnum = 3}};
	const Elf64_Dyn entries[] = {{DT_STRTAB, {offsetof(struct small, text)}},
		{DT_STRSZ, {sizeof(texts)}}, {DT_NEEDED, {at("libc.so.6")}},
		{DT_NEEDED, {at("libcuda.so.1")}}, {DT_RPATH, {at("/opt/rp")}},
		{DT_RUNPATH, {at("$ORIGIN/run")}}, {DT_SONAME, {at("me.so")}}, {DT_NULL, {0}}};

	file.header.e_ident[EI_CLASS] = ELFCLASS64;
	file.header.e_ident[EI_DATA] = ELFDATA2LSB;
	file.load = (Elf64_Phdr){.p_type = PT_LOAD, .p_filesz = sizeof(file)};
	file.interpreter = (Elf64_Phdr){.p_type = PT_INTERP,
		.p_offset = offsetof(struct small, text) + at("/lib64/ld-linux-x86-64.so.2"),
		.p_filesz = sizeof("/lib64/ld-linux-x86-64.so.2")};
	file.dynamic = (Elf64_Phdr){.p_type = PT_DYNAMIC,
		.p_offset = offsetof(struct small, entries),
		.p_filesz = sizeof(entries)};
	memcpy(file.entries, entries, sizeof(entries));
	memcpy(file.text, texts, sizeof(texts));
	file.symbols[1] = (Elf64_Sym){.st_name = (uint32_t)at("cuInit"), .st_shndx = 1};
	file.sections[1] = (Elf64_Shdr){.sh_type = SHT_DYNSYM,
		.sh_offset = offsetof(struct small, symbols),
		.sh_size = sizeof(file.symbols),
		.sh_link = 2};
	file.sections[2] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct small, text),
		.sh_size = sizeof(texts)};
	return file;
}

static int file_of(const void *bytes, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
	return fd;
}

/* Asks everything of a file; what it answers is not looked at, only that it comes back. */
static int try_all(int fd)
{
	static const char *const names[] = {"cuInit", NULL};
	const char *name = NULL;
	char *path = NULL;
	struct elf_facts facts;
	int rc = elf_read(fd, &facts);

	cr_assert(rc == 0 || rc == ELF_NO || rc == ELF_DAMAGED, "elf_read: %d", rc);
	if (!rc)
		elf_done(&facts);
	rc = elf_defines(fd, names, &name);
	cr_assert(rc == 0 || rc == ELF_NO || rc == ELF_DAMAGED, "elf_defines: %d", rc);
	cr_assert_eq(elf_driver_path(fd, &path), 0);
	free(path);
	return rc;
}

Test(elf_file, tells_how_a_program_is_loaded)
{
	struct small file = make();
	struct elf_facts facts;
	int fd = file_of(&file, sizeof(file));

	cr_assert_eq(elf_read(fd, &facts), 0);
	cr_expect(facts.is_native && !facts.is_static);
	cr_expect_eq(facts.bits, 64);
	cr_expect_str_eq(facts.interpreter, "/lib64/ld-linux-x86-64.so.2");
	cr_expect_str_eq(facts.soname, "me.so");
	cr_expect_str_eq(facts.rpath, "/opt/rp");
	cr_expect_str_eq(facts.runpath, "$ORIGIN/run");
	cr_assert_eq(facts.needed_count, 2);
	cr_expect_str_eq(facts.needed[0], "libc.so.6");
	cr_expect_str_eq(facts.needed[1], "libcuda.so.1");
	elf_done(&facts);
	close(fd);
}

Test(elf_file, without_an_interpreter_is_static)
{
	struct small file = make();
	struct elf_facts facts;
	int fd;

	file.interpreter.p_type = PT_NULL;
	fd = file_of(&file, sizeof(file));
	cr_assert_eq(elf_read(fd, &facts), 0);
	cr_expect(facts.is_static);
	elf_done(&facts);
	close(fd);
}

Test(elf_file, knows_other_classes_and_machines_by_their_header)
{
	struct small file = make();
	struct elf_facts facts;
	int fd;

	file.header.e_ident[EI_CLASS] = ELFCLASS32;
	file.header.e_machine = EM_386;
	fd = file_of(&file, sizeof(Elf32_Ehdr));
	cr_assert_eq(elf_read(fd, &facts), 0);
	cr_expect_eq(facts.bits, 32);
	cr_expect_not(facts.is_native);
	close(fd);
	file.header.e_ident[EI_CLASS] = ELFCLASS64;
	file.header.e_machine = EM_AARCH64;
	fd = file_of(&file, sizeof(file));
	cr_assert_eq(elf_read(fd, &facts), 0);
	cr_expect_not(facts.is_native);
	close(fd);
}

Test(elf_file, refuses_what_is_none)
{
	static const char script[] = "#!/bin/sh\nexit 0\n";
	struct elf_facts facts;
	int fd = file_of(script, sizeof(script));

	cr_expect_eq(elf_read(fd, &facts), ELF_NO);
	close(fd);
	fd = file_of("", 0);
	cr_expect_eq(elf_read(fd, &facts), ELF_NO);
	close(fd);
	fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cr_expect_eq(elf_read(fd, &facts), -EISDIR);
	close(fd);
}

Test(elf_file, refuses_offsets_outside_the_file)
{
	struct small file = make();
	struct elf_facts facts;
	int fd;

	file.header.e_phoff = UINT64_MAX - 3;
	fd = file_of(&file, sizeof(file));
	cr_expect_eq(elf_read(fd, &facts), ELF_DAMAGED);
	close(fd);
	file = make();
	file.entries[2].d_un.d_val = sizeof(texts) + 1;
	fd = file_of(&file, sizeof(file));
	cr_expect_eq(elf_read(fd, &facts), ELF_DAMAGED);
	close(fd);
	file = make();
	file.header.e_phnum = UINT16_MAX;
	fd = file_of(&file, sizeof(file));
	cr_expect_eq(elf_read(fd, &facts), ELF_DAMAGED);
	close(fd);
}

Test(elf_file, finds_symbols_that_are_defined_only)
{
	static const char *const names[] = {"dlsym", "cuInit", NULL};
	struct small file = make();
	const char *name = NULL;
	int fd = file_of(&file, sizeof(file));

	cr_assert_eq(elf_defines(fd, names, &name), 0);
	cr_assert_not_null(name);
	cr_expect_str_eq(name, "cuInit");
	close(fd);
	file.symbols[1].st_shndx = SHN_UNDEF;
	fd = file_of(&file, sizeof(file));
	cr_assert_eq(elf_defines(fd, names, &name), 0);
	cr_expect_null(name);
	close(fd);
}

static void check_path(const char *bytes, size_t size, size_t where, const char *expected)
{
	char *path = NULL;
	int fd = memfd_create("text", MFD_CLOEXEC);

	cr_assert_eq(pwrite(fd, bytes, size, (off_t)where), (ssize_t)size);
	cr_assert_eq(elf_driver_path(fd, &path), 0);
	if (expected)
		cr_expect_str_eq(path ? path : "nothing", expected);
	else
		cr_expect_null(path, "%s", path);
	free(path);
	close(fd);
}

Test(elf_file, finds_absolute_driver_paths_only)
{
	static const char mixed[] = "libcuda.so.1\0%s/libcuda.so\0./libcuda.so.1\0"
				    "see /usr/lib/libcuda.so.1 \0/libcuda.so.log\0/a/libcuda.so";

	check_path(mixed, sizeof(mixed), 0, "/a/libcuda.so");
	check_path("libcuda.so.1", 13, 0, NULL);
	check_path("%s/libcuda.so", 14, 0, NULL);
	check_path("/usr/lib/libcuda.so.1", 22, 0, "/usr/lib/libcuda.so.1");
	/* across the border of two chunks of 1 MiB */
	for (size_t shift = 0; shift < 24; shift++)
		check_path(
			"/usr/lib/libcuda.so.1", 22, (1u << 20) - shift, "/usr/lib/libcuda.so.1");
}

Test(elf_file, bears_every_truncation)
{
	struct small file = make();

	for (size_t size = 0; size <= sizeof(file); size++) {
		int fd = file_of(&file, size);

		try_all(fd);
		close(fd);
	}
}

Test(elf_file, bears_flipped_bytes)
{
	unsigned seed = 20261130;
	struct small whole = make();
	int fd = file_of(&whole, sizeof(whole));

	for (int i = 0; i < FLIPS; i++) {
		struct small file = whole;
		unsigned flips = 1 + (unsigned)rand_r(&seed) % 8;

		while (flips--)
			((unsigned char *)&file)[(unsigned)rand_r(&seed) %
						 offsetof(struct small, text)] =
				(unsigned char)rand_r(&seed);
		cr_assert_eq(pwrite(fd, &file, sizeof(file), 0), (ssize_t)sizeof(file));
		try_all(fd);
	}
	close(fd);
}

Test(elf_file, bears_extreme_words_in_every_place)
{
	static const uint64_t words[] = {0, 1, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
	struct small whole = make();
	int fd = file_of(&whole, sizeof(whole));

	for (size_t offset = 4; offset + 8 <= offsetof(struct small, text); offset += 4) {
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			struct small file = whole;

			memcpy((char *)&file + offset, &words[i], sizeof(words[i]));
			cr_assert_eq(pwrite(fd, &file, sizeof(file), 0), (ssize_t)sizeof(file));
			try_all(fd);
		}
	}
	close(fd);
}
