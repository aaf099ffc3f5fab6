/* LD_PRELOAD: the user's entries are kept, ours is there once. */
#include "launch/preload_list.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <errno.h>
#include <stdlib.h>

#define OURS "/opt/hearth/lib/libhearth.so"

static void check(const char *list, const char *expected)
{
	char *result = NULL;

	cr_assert(eq(int, preload_list_add(list, OURS, &result), 0));
	cr_expect(eq(str, result, (char *)expected), "from %s", list ? list : "nothing");
	free(result);
}

Test(preload_list, is_alone_where_there_was_none)
{
	check(NULL, OURS);
	check("", OURS);
	check(" : ", OURS);
}

Test(preload_list, comes_after_the_users)
{
	check("libjemalloc.so.2", "libjemalloc.so.2:" OURS);
	check("/a.so:/b.so", "/a.so:/b.so:" OURS);
	check("/a.so /b.so", "/a.so:/b.so:" OURS);
	check(":/a.so: ", "/a.so:" OURS);
}

Test(preload_list, is_idempotent)
{
	check(OURS, OURS);
	check("/a.so:" OURS, "/a.so:" OURS);
	check(OURS " /a.so", OURS ":/a.so");
	check(OURS ":" OURS, OURS);
}

Test(preload_list, takes_the_place_of_another_copy)
{
	check("/old/libhearth.so:/a.so", OURS ":/a.so");
	check("libhearth.so", OURS);
	check("/usr/$LIB/hearth/libhearth.so:/a.so:/x/libhearth.so", OURS ":/a.so");
}

Test(preload_list, leaves_similar_names_alone)
{
	check("/a/libhearth.so.1", "/a/libhearth.so.1:" OURS);
	check("/a/mylibhearth.so", "/a/mylibhearth.so:" OURS);
	check("/libhearth.so/b.so", "/libhearth.so/b.so:" OURS);
}

Test(preload_list, refuses_what_the_loader_would_split_or_expand)
{
	char *result = NULL;

	cr_expect(eq(int, preload_list_add("/a.so", "/a b/libhearth.so", &result), -EINVAL));
	cr_expect(eq(int, preload_list_add("/a.so", "/a:b/libhearth.so", &result), -EINVAL));
	cr_expect(eq(int, preload_list_add("/a.so", "/$LIB/libhearth.so", &result), -EINVAL));
	cr_expect(eq(int, preload_list_add("/a.so", "libhearth.so", &result), -EINVAL));
	cr_expect(eq(ptr, result, NULL));
}

Test(preload_list, finds_ours_in_a_list)
{
	cr_expect(preload_list_has("/a.so /x/libhearth.so", OURS));
	cr_expect(not(preload_list_has("/a.so:/x/libhearth.so.2", OURS)));
	cr_expect(not(preload_list_has(NULL, OURS)));
}
