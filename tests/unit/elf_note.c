/* Build-ids: read from a real file, and from no damaged one. */
#include "broker/elf_note.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEAD 8192 /* bytes of this program that hold its headers and notes */

static int copy_of(const char *bytes, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
	return fd;
}

static void read_self(char ret_bytes[HEAD])
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(read(fd, ret_bytes, HEAD), HEAD);
	close(fd);
}

Test(elf_note, this_program_has_one)
{
	uint8_t id[ELF_BUILD_ID_MAX], none[ELF_BUILD_ID_MAX] = {0};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(elf_note_build_id(fd, id), 0);
	cr_assert_neq(memcmp(id, none, sizeof(id)), 0);
}

Test(elf_note, a_file_cut_anywhere_is_an_error_or_the_same)
{
	uint8_t whole[ELF_BUILD_ID_MAX], part[ELF_BUILD_ID_MAX];
	char bytes[HEAD];
	int fd;

	read_self(bytes);
	fd = copy_of(bytes, HEAD);
	cr_assert_eq(elf_note_build_id(fd, whole), 0);
	for (size_t size = HEAD - 1; size > 0; size -= size > 1024 ? 64 : 1) {
		cr_assert_eq(ftruncate(fd, (off_t)size), 0);
		if (!elf_note_build_id(fd, part))
			cr_assert_eq(memcmp(whole, part, sizeof(part)), 0, "%zu", size);
	}
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(elf_note_build_id(fd, part), -ENOEXEC);
}

Test(elf_note, damaged_bytes_do_no_harm)
{
	uint8_t id[ELF_BUILD_ID_MAX];
	char bytes[HEAD], damaged[HEAD];

	read_self(bytes);
	srand(3);
	for (int round = 0; round < 2000; round++) {
		int fd;

		memcpy(damaged, bytes, HEAD);
		for (int i = 0; i < 8; i++)
			damaged[rand() % 1024] = (char)rand();
		fd = copy_of(damaged, HEAD);
		cr_assert_leq(elf_note_build_id(fd, id), 0);
		close(fd);
	}
}
