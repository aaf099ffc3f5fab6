/* Build-ids: read from a real file, and from no damaged one. */
#include "driver/build_id.h"

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

Test(build_id, this_program_has_one)
{
	struct build_id id;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	cr_assert_eq(build_id_of_file(fd, &id), 0);
	cr_assert_gt(id.size, 0);
}

Test(build_id, a_file_cut_anywhere_is_an_error_or_the_same)
{
	struct build_id whole, part;
	char bytes[HEAD];
	int fd;

	read_self(bytes);
	fd = copy_of(bytes, HEAD);
	cr_assert_eq(build_id_of_file(fd, &whole), 0);
	for (size_t size = HEAD - 1; size > 0; size -= size > 1024 ? 64 : 1) {
		cr_assert_eq(ftruncate(fd, (off_t)size), 0);
		if (!build_id_of_file(fd, &part))
			cr_assert_eq(memcmp(whole.bytes, part.bytes, BUILD_ID_MAX), 0, "%zu", size);
	}
	cr_assert_eq(ftruncate(fd, 0), 0);
	cr_assert_eq(build_id_of_file(fd, &part), -ENOEXEC);
}

Test(build_id, damaged_bytes_do_no_harm)
{
	struct build_id id;
	char bytes[HEAD], damaged[HEAD];

	read_self(bytes);
	srand(3);
	for (int round = 0; round < 2000; round++) {
		int fd;

		memcpy(damaged, bytes, HEAD);
		for (int i = 0; i < 8; i++)
			damaged[rand() % 1024] = (char)rand();
		fd = copy_of(damaged, HEAD);
		cr_assert_leq(build_id_of_file(fd, &id), 0);
		close(fd);
	}
}
