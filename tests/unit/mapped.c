/* From addresses to the files that they are mapped from. */
#include "driver/mapped.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "found at its offset in the file of this very program";
static char written[] = "likewise";
static char zeros[1 << 16];

static void read_at(const struct mapped *mapped, uint64_t offset, char *ret_bytes, size_t size)
{
	int fd = open(mapped->path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", mapped->path);
	cr_assert_eq(pread(fd, ret_bytes, size, (off_t)offset), (ssize_t)size);
	close(fd);
}

Test(mapped, the_program_itself)
{
	struct mapped mapped;
	char bytes[sizeof(text)];

	cr_assert_eq(mapped_find(text, written, &mapped), 0);
	read_at(&mapped, mapped.offset, bytes, sizeof(text));
	cr_assert_arr_eq(bytes, text, sizeof(text));
	cr_assert_geq(mapped.left, sizeof(text));
	read_at(&mapped, mapped.beside, bytes, sizeof(written));
	cr_assert_arr_eq(bytes, written, sizeof(written));
}

Test(mapped, a_library_and_its_build_id)
{
	void *library = dlopen(PROBE, RTLD_NOW);
	struct build_id id;
	struct mapped mapped;
	int fd = open(PROBE, O_RDONLY | O_CLOEXEC);

	cr_assert(library);
	cr_assert_eq(build_id_of_file(fd, &id), 0);
	close(fd);
	cr_assert_eq(mapped_find(dlsym(library, "probe_count"), text, &mapped), 0);
	cr_assert_str_eq(mapped.path, PROBE);
	cr_assert_eq(mapped.id.size, id.size);
	cr_assert_arr_eq(mapped.id.bytes, id.bytes, id.size);
	cr_assert_eq(mapped.beside, MAPPED_NOT_BESIDE);
	dlclose(library);
}

Test(mapped, a_library_by_a_relative_name)
{
	char folder[] = PROBE, *slash = strrchr(folder, '/');
	struct mapped mapped;
	char name[64] = "./";
	void *library;

	*slash = '\0';
	strcat(name, slash + 1);
	cr_assert_eq(chdir(folder), 0);
	library = dlopen(name, RTLD_NOW);
	cr_assert(library);
	cr_assert_eq(mapped_find(dlsym(library, "probe_count"), NULL, &mapped), 0);
	cr_assert_eq(mapped.path[0], '/');
	cr_assert_eq(access(mapped.path, R_OK), 0, "%s", mapped.path);
}

Test(mapped, what_is_in_no_file)
{
	char *heap = calloc(1, 100), stack[16];
	struct mapped mapped;

	cr_assert_eq(mapped_find(heap, NULL, &mapped), -ENOENT);
	cr_assert_eq(mapped_find(stack, NULL, &mapped), -ENOENT);
	cr_assert_eq(mapped_find(zeros + sizeof(zeros) - 1, NULL, &mapped), -ENOENT);
	cr_assert_eq(mapped_find(NULL, NULL, &mapped), -ENOENT);
	cr_assert_eq(mapped_find(text, zeros + sizeof(zeros) - 1, &mapped), 0);
	cr_assert_eq(mapped.beside, MAPPED_NOT_BESIDE);
	free(heap);
}
