/* Which files may be taken for a driver: never ourselves, under whatever name. */
#include "driver/locate.h"

#include "driver/build_id.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/hearth-unit-XXXXXX";
static char path[64];

static void make_folder(void)
{
	cr_assert(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
}

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

static void copy_from(const char *source)
{
	int from = open(source, O_RDONLY), to = open(path, O_WRONLY | O_CREAT, 0600);
	char bytes[4096];
	ssize_t size;

	cr_assert(from >= 0 && to >= 0);
	while ((size = read(from, bytes, sizeof(bytes))) > 0)
		cr_assert_eq(write(to, bytes, (size_t)size), size);
	close(from);
	close(to);
}

Test(locate, ourselves, .init = make_folder, .fini = remove_folder)
{
	cr_assert_eq(locate_check("/proc/self/exe"), -ELOOP);
	copy_from("/proc/self/exe");
	cr_assert_eq(locate_check(path), -ELOOP);
	unlink(path);
	cr_assert_eq(symlink("/proc/self/exe", path), 0);
	cr_assert_eq(locate_check(path), -ELOOP);
}

Test(locate, what_cannot_be_a_driver, .init = make_folder, .fini = remove_folder)
{
	cr_assert_eq(locate_check(path), -ENOENT);
	cr_assert_eq(locate_check("/etc/passwd"), -ENOEXEC);
	cr_assert_lt(locate_check("/"), 0);
	copy_from("/dev/null");
	cr_assert_eq(locate_check(path), -ENOEXEC);
}

Test(locate, a_pipe_is_not_waited_for, .init = make_folder, .fini = remove_folder)
{
	cr_assert_eq(mkfifo(path, 0600), 0);
	alarm(5);
	cr_assert_lt(locate_check(path), 0);
}

Test(locate, build_ids)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	char text[2 * BUILD_ID_MAX + 1];
	struct build_id id;

	cr_assert_eq(build_id_of_file(fd, &id), 0);
	cr_assert_eq(id.size, 20);
	build_id_format(&id, text);
	cr_assert_eq(strlen(text), 40);
	cr_assert(build_id_is_own(fd));
	close(fd);
	fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(build_id_of_file(fd, &id), -ENOEXEC);
	close(fd);
}
