/* Files with images: what tells them apart, and how a path is seen from a folder. */
#include "preload/image_file.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

Test(image_file, paths_from_a_folder)
{
	static const struct {
		const char *folder, *path, *expected;
	} rows[] = {
		{"/venv/bin", "/venv/lib/x.so", "../lib/x.so"},
		{"/venv/bin", "/venv/bin/x.so", "x.so"},
		{"/venv", "/venv/lib/x.so", "lib/x.so"},
		{"/a/b/c/d", "/a/x.so", "../../../x.so"},
		{"/a/bin", "/a/binary/x.so", "../binary/x.so"},
		{"/a/binary", "/a/bin/x.so", "../bin/x.so"},
		{"/a/b/", "/a/c/x.so", "../c/x.so"},
		{"/a//b", "/a/c/x.so", "../c/x.so"},
		{"/usr/bin", "/opt/lib/x.so", NULL},
		{"/", "/x.so", NULL},
		{"", "/x.so", NULL},
		{"bin", "/x.so", NULL},
		{"/bin", "x.so", NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char path[64];
		bool is_there =
			image_file_relative(rows[i].folder, rows[i].path, path, sizeof(path));

		cr_expect_eq(is_there, rows[i].expected != NULL, "%s", rows[i].folder);
		if (is_there && rows[i].expected)
			cr_expect_str_eq(path, rows[i].expected, "%s", rows[i].folder);
	}
}

Test(image_file, a_path_without_room)
{
	char path[12];

	cr_assert(image_file_relative("/venv/bin", "/venv/lib/x.so", path, sizeof(path)));
	cr_assert_not(image_file_relative("/venv/bin", "/venv/lib/xx.so", path, sizeof(path)));
	cr_assert_not(image_file_relative("/venv/a/b/c/d/e", "/venv/x", path, sizeof(path)));
}

static struct image_file identify(const char *path)
{
	struct image_file file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(image_file_identify(fd, &file), 0);
	close(fd);
	return file;
}

Test(image_file, objects_with_and_without_a_build_id_and_other_files)
{
	Elf64_Ehdr header = {.e_ident = ELFMAG, .e_phoff = sizeof(header)};
	char path[] = "/tmp/hearth-image-XXXXXX";
	int fd = mkstemp(path);
	struct image_file file, other;

	cr_assert_geq(fd, 0);
	cr_assert_eq(identify(PROBE).kind, IMAGE_FILE_BUILD_ID);
	cr_assert_eq(identify(path).kind, IMAGE_FILE_PLAIN);
	cr_assert_eq(write(fd, &header, sizeof(header)), sizeof(header));
	file = identify(path);
	cr_assert_eq(file.kind, IMAGE_FILE_HEADERS);
	cr_assert_eq(file.size, sizeof(header));
	header.e_entry = 1;
	cr_assert_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	other = identify(path);
	cr_assert_neq(memcmp(file.identity, other.identity, sizeof(file.identity)), 0);
	header.e_phnum = 9; /* which are not there */
	cr_assert_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	cr_assert_eq(identify(path).kind, IMAGE_FILE_PLAIN);
	close(fd);
	unlink(path);
}

Test(image_file, parts_that_are_there_and_parts_that_are_not)
{
	char path[] = "/tmp/hearth-image-XXXXXX";
	int fd = mkstemp(path);
	char *copy;

	cr_assert_eq(write(fd, "0123456789", 10), 10);
	copy = image_file_copy(fd, 3, 7);
	cr_assert(copy);
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_arr_eq(copy, "3456789", 7);
	munmap(copy, 7);
	cr_assert_not(image_file_copy(fd, 3, 7));
	cr_assert_not(image_file_copy(fd, 0, 0));
	cr_assert_not(image_file_copy(-1, 0, 1));
	close(fd);
	unlink(path);
}

static uint32_t look(const char *content, size_t size, enum image_form form)
{
	struct image image = {.size = size};

	image_file_look(content, 90, &image);
	cr_expect_eq(image.form, form, "%.8s", content);
	return image.flags;
}

Test(image_file, what_a_whole_file_is)
{
	static const struct {
		uint32_t magic;
		uint16_t version, header_size;
		uint64_t size;
		uint16_t kind, entry_version;
		uint32_t entry_header_size;
		uint64_t entry_size;
	} ptx = {0xba55ed50u, 1, 16, 16, 1, 1, 16, 0},
	  beyond = {0xba55ed50u, 1, 16, 17, 1, 1, 16, 0};

	cr_assert_eq(look("\177ELF............", 16, IMAGE_ELF), 0);
	cr_assert_eq(look("// by hand\n.version 8.0\n", 24, IMAGE_TEXT), IMAGE_IS_JIT);
	cr_assert_eq(look("// by hand\n.vers", 16, IMAGE_TEXT), 0);
	cr_assert_eq(look("x", 1, IMAGE_TEXT), 0);
	cr_assert_eq(look((const char *)&ptx, sizeof(ptx), IMAGE_FATBIN), IMAGE_IS_JIT);
	/* It says more than there is: not looked into. */
	cr_assert_eq(look((const char *)&beyond, sizeof(beyond), IMAGE_FATBIN), 0);
}
