/* The loader's search on paper, against the loader that loaded this test. */
#include "doctor/search.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct scene scene;

static void make_scene(void)
{
	cr_assert_eq(scene_init(NULL, &scene), 0);
}

TestSuite(search, .init = make_scene);

static bool is_same_file(const char *a, const char *b)
{
	struct stat first, second;

	return !stat(a, &first) && !stat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

struct loaded_count {
	const struct search *search;
	size_t seen, found;
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	struct loaded_count *count = data;
	bool is_found = false;

	if (!strchr(info->dlpi_name, '/')) /* the program and the vDSO */
		return 0;
	count->seen++;
	for (size_t i = 0; i < count->search->count; i++)
		is_found |= count->search->objects[i].path &&
			    is_same_file(count->search->objects[i].path, info->dlpi_name);
	cr_expect(is_found, "%s is loaded, and not found on paper", info->dlpi_name);
	count->found += is_found;
	return 0;
}

Test(search, finds_the_files_that_the_loader_took)
{
	struct search *search = calloc(1, sizeof(*search));
	struct loaded_count count = {.search = search};

	cr_assert_eq(
		search_walk(&scene, "/proc/self/exe", scene.env[ENV_LD_LIBRARY_PATH], search), 0);
	dl_iterate_phdr(look, &count);
	cr_expect_gt(count.seen, 0);
	cr_expect_eq(count.found, count.seen);
	search_done(search);
	free(search);
}

Test(search, finds_no_library_that_is_not_there)
{
	struct search *search = calloc(1, sizeof(*search));
	char *path = NULL;

	search_prepare(&scene, "/nowhere:relative::/dev", search);
	cr_expect_eq(search_find(search, -1, "libnosuchlibrary.so.9", &path), -ENOENT);
	cr_expect_eq(search_find(search, -1, "/nowhere/libnosuchlibrary.so.9", &path), -ENOENT);
	cr_expect_null(path);
	search_done(search);
	free(search);
}

Test(search, takes_no_text_for_a_library)
{
	cr_expect_not(search_is_driver(&scene, "/etc/passwd"));
	cr_expect_not(search_is_driver(&scene, "/"));
	cr_expect_not(search_is_driver(&scene, "/nowhere"));
}
