/* lib/driver/copy and lib/driver/imports, on a library of our own (PROBE). */
#include "driver/copy.h"
#include "driver/imports.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

typedef const char *(*read_function)(const char *);
typedef int (*count_function)(void);

static const char *answer(const char *name)
{
	return "redirected";
}

static const char *read_in(const struct driver_copy *copy, const char *name)
{
	return ((read_function)dlsym(copy->handle, "probe_read"))(name);
}

static int count_in(const struct driver_copy *copy)
{
	return ((count_function)dlsym(copy->handle, "probe_count"))();
}

static int open_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

Test(driver_copy, redirects_only_that_copy)
{
	const struct import_hook hook = {"getenv", (void *)answer};
	struct driver_copy first, second;

	setenv("HEARTH_TEST_NAME", "live", 1);
	cr_assert_eq(copy_open(PROBE, &first), 0);
	cr_assert_eq(copy_open_fresh(PROBE, &second), 0);
	cr_assert_gt(imports_redirect(second.map, &hook, 1), 0);
	cr_assert_str_eq(read_in(&first, "HEARTH_TEST_NAME"), "live");
	cr_assert_str_eq(read_in(&second, "HEARTH_TEST_NAME"), "redirected");
	cr_assert_str_eq(getenv("HEARTH_TEST_NAME"), "live");
}

Test(driver_copy, an_import_that_is_not_there_changes_nothing)
{
	const struct import_hook hook = {"hearth_no_such_import", (void *)answer};
	struct driver_copy copy;

	cr_assert_eq(copy_open(PROBE, &copy), 0);
	cr_assert_eq(imports_redirect(copy.map, &hook, 1), 0);
}

Test(driver_copy, every_copy_has_its_own_state_and_leaves_no_descriptor)
{
	struct driver_copy copies[5];
	int before;

	cr_assert_eq(copy_open(PROBE, &copies[0]), 0);
	before = open_descriptors();
	for (int i = 1; i < 5; i++)
		cr_assert_eq(copy_open_fresh(PROBE, &copies[i]), 0);
	cr_assert_eq(open_descriptors(), before);
	for (int i = 0; i < 5; i++)
		for (int call = 0; call < i; call++)
			read_in(&copies[i], "HOME");
	for (int i = 0; i < 5; i++)
		cr_assert_eq(count_in(&copies[i]), i);
}

Test(driver_copy, a_missing_or_foreign_file_is_refused)
{
	struct driver_copy copy;

	cr_assert_eq(copy_open_fresh("/nonexistent/libcuda.so.1", &copy), -ENOENT);
	cr_assert_eq(copy_open_fresh("/proc/self/environ", &copy), -ELIBACC);
	cr_assert_eq(copy_open("/proc/self/environ", &copy), -ELIBACC);
}

static int bind_abstract(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(address.sun_path + 1, name);
	if (bind(fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name)))) {
		close(fd);
		return -1;
	}
	listen(fd, 1);
	return fd;
}

Test(driver_copy, retiring_frees_the_drivers_socket_and_no_other)
{
	char driver_name[64], other_name[64], text[8];
	int driver, other, again;

	snprintf(driver_name, sizeof(driver_name), "cuda-uvmfd-4026531836-%d", getpid());
	snprintf(other_name, sizeof(other_name), "hearth-test-%d", getpid());
	driver = bind_abstract(driver_name);
	other = bind_abstract(other_name);
	cr_assert_geq(driver, 0);
	cr_assert_geq(other, 0);
	cr_assert_eq(bind_abstract(driver_name), -1);
	cr_assert_eq(copy_retire(), 1);
	again = bind_abstract(driver_name);
	cr_assert_geq(again, 0);
	cr_assert_eq(bind_abstract(other_name), -1);
	/* The number stays taken, by something that never has anything to say. */
	cr_assert_eq(read(driver, text, 0), -1);
	cr_assert_eq(copy_retire(), 1);
	cr_assert_eq(copy_retire(), 0);
}
