/* Reading ld.so.cache: what ldconfig writes is found, what it could not have written is refused. */
#include "driver/ld_cache.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HEADER 48u
#define ENTRY 24u
#define X86_64 0x0303

static char cache[1024];
static size_t size;
static char found[8][64];
static size_t found_count, accept_at;

/* A cache of three entries for two libraries, the first of another architecture. */
static void make(size_t start)
{
	static const struct {
		int32_t flags;
		const char *name, *path;
	} entries[] = {
		{0x0003, "libcuda.so.1", "/lib32/libcuda.so.1"},
		{X86_64, "libcuda.so.1", "/one/libcuda.so.1"},
		{X86_64, "libcuda.so.1", "/two/libcuda.so.1"},
		{X86_64, "libm.so.6", "/lib/libm.so.6"},
	};
	uint32_t count = 4, at = HEADER + 4 * ENTRY;
	char *base = cache + start;

	memset(base, 0, sizeof(cache) - start);
	memcpy(base, "glibc-ld.so.cache1.1", 20);
	memcpy(base + 20, &count, 4);
	for (uint32_t i = 0; i < count; i++) {
		char *entry = base + HEADER + i * ENTRY;
		uint32_t name = at, path = at + (uint32_t)strlen(entries[i].name) + 1;

		memcpy(entry, &entries[i].flags, 4);
		memcpy(entry + 4, &name, 4);
		memcpy(entry + 8, &path, 4);
		strcpy(base + name, entries[i].name);
		strcpy(base + path, entries[i].path);
		at = path + (uint32_t)strlen(entries[i].path) + 1;
	}
	size = start + at;
	found_count = 0;
	accept_at = 0;
}

static int accept_path(const char *path, void *data)
{
	strcpy(found[found_count++], path);
	return found_count == accept_at ? 0 : -ENOENT;
}

static int find(const char *name)
{
	return ld_cache_find_in(cache, size, name, accept_path, NULL);
}

Test(ld_cache, entries_of_this_architecture_in_order)
{
	make(0);
	cr_assert_eq(find("libcuda.so.1"), -ENOENT);
	cr_assert_eq(found_count, 2);
	cr_assert_str_eq(found[0], "/one/libcuda.so.1");
	cr_assert_str_eq(found[1], "/two/libcuda.so.1");
}

Test(ld_cache, stops_at_the_first_accepted)
{
	make(0);
	accept_at = 1;
	cr_assert_eq(find("libcuda.so.1"), 0);
	cr_assert_eq(found_count, 1);
}

Test(ld_cache, older_table_in_front_is_skipped)
{
	uint32_t count = 2;

	make(40); /* 16 bytes of header, 2 entries of 12 */
	memcpy(cache, "ld.so-1.7.0", 12);
	memcpy(cache + 12, &count, 4);
	cr_assert_eq(find("libm.so.6"), -ENOENT);
	cr_assert_eq(found_count, 1);
}

Test(ld_cache, damage_is_refused)
{
	uint32_t huge = 0xffffffff;

	make(0);
	cache[19] = '2';
	cr_assert_eq(find("libcuda.so.1"), -EBADMSG);
	make(0);
	memcpy(cache + 20, &huge, 4);
	cr_assert_eq(find("libcuda.so.1"), -EBADMSG);
	make(0);
	memcpy(cache, "ld.so-1.7.0", 12);
	memcpy(cache + 12, &huge, 4);
	cr_assert_eq(find("libcuda.so.1"), -EBADMSG);
}

Test(ld_cache, no_cut_is_read_past_its_end)
{
	make(0);
	for (size_t whole = size; size > 0; size--) {
		char *copy = malloc(size);

		cr_assert(copy);
		memcpy(copy, cache, size);
		ld_cache_find_in(copy, size, "libcuda.so.1", accept_path, NULL);
		found_count = 0;
		free(copy);
		cr_assert_leq(size, whole);
	}
}

Test(ld_cache, texts_outside_the_file_are_not_followed)
{
	uint32_t outside = 1000000;

	make(0);
	memcpy(cache + HEADER + ENTRY + 8, &outside, 4);
	memcpy(cache + HEADER + 2 * ENTRY + 4, &outside, 4);
	cr_assert_eq(find("libcuda.so.1"), -ENOENT);
	cr_assert_eq(found_count, 0);
}
