/* Lists of files in a profile's extension area. */
#include "profile/files.h"
#include "profile/extension.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static _Alignas(8) uint8_t room[PROFILE_EXTENSION_MAX];
static struct profile_extension area;
static struct files_draft draft;
static struct files files;

static void make(void)
{
	area = (struct profile_extension){.data = room, .room = sizeof(room)};
	memset(&draft, 0, sizeof(draft));
}

TestSuite(files, .init = make);

static void add(const char *path, uint32_t first, uint32_t count)
{
	cr_assert(files_draft_add(&draft, path, 1000));
	if (count)
		cr_assert(files_draft_range(&draft, first, count));
}

static void write_list(void)
{
	cr_assert_eq(files_write(&area, &draft), 0);
	cr_assert(extension_is_walkable(area.data, area.size));
}

static const char *path_of(uint32_t index)
{
	static char path[PATH_MAX];

	cr_assert(files_path(&files, &files.files[index], path));
	return path;
}

Test(files, what_is_written_is_read)
{
	add("/a/b/one.so", 3, 4);
	cr_assert(files_draft_range(&draft, 9, 1));
	add("/a/b/two.pyc", 0, 0);
	add("/three", 1, 1);
	write_list();
	cr_assert_eq(files_find(&area, &files), 0);
	cr_assert_eq(files.head->file_count, 3);
	cr_assert_str_eq(path_of(0), "/a/b/one.so");
	cr_assert_str_eq(path_of(1), "/a/b/two.pyc");
	cr_assert_str_eq(path_of(2), "/three");
	cr_assert_eq(files.files[0].folder, files.files[1].folder, "a folder is kept once");
	cr_assert_eq(files.files[0].range_count, 2);
	cr_assert_eq(files.files[1].range_count, 0);
	cr_assert_eq(files.ranges[files.files[2].range_first].first, 1);
	cr_assert_eq(files.files[1].size, 1000);
}

Test(files, a_new_list_takes_the_place_of_the_old_and_leaves_others)
{
	struct extension_record record;
	uint32_t cursor = 0, others = 0, lists = 0;

	cr_assert_eq(extension_add(&area, 77, "other", 5), 0);
	add("/a/one", 0, 1);
	write_list();
	make();
	area.size = 16;
	add("/a/one", 0, 1);
	write_list();
	memset(&draft, 0, sizeof(draft));
	add("/a/two", 0, 1);
	write_list();
	while (extension_next(&area, &cursor, &record)) {
		others += record.type == 77;
		lists += record.type == FILES_RECORD;
	}
	cr_assert_eq(others, 1);
	cr_assert_eq(lists, 1);
	cr_assert_eq(files_find(&area, &files), 0);
	cr_assert_str_eq(path_of(0), "/a/two");
}

Test(files, an_empty_draft_leaves_none)
{
	add("/a/one", 0, 1);
	write_list();
	memset(&draft, 0, sizeof(draft));
	write_list();
	cr_assert_eq(files_find(&area, &files), PROFILE_NONE);
}

Test(files, odd_paths_are_not_stored)
{
	cr_assert_not(files_draft_add(&draft, "relative", 1));
	cr_assert_not(files_draft_add(&draft, "/folder/", 1));
	cr_assert_not(files_draft_add(&draft, "/a/line\nbreak", 1));
	cr_assert_eq(draft.file_count, 0);
}

Test(files, is_bounded)
{
	char path[64];
	uint32_t count = 0;

	for (;; count++) {
		snprintf(path, sizeof(path), "/folder/a-name-of-some-length-%u", count);
		if (!files_draft_add(&draft, path, 1))
			break;
	}
	cr_assert_gt(count, 1000);
	cr_assert_leq(count, FILES_MAX);
	cr_assert(files_draft_range(&draft, 0, FILES_UNITS_MAX));
	cr_assert_not(files_draft_range(&draft, 0, 1));
	write_list();
	cr_assert_eq(files_find(&area, &files), 0);
	cr_assert_eq(files.head->file_count, count);
}

Test(files, one_is_dropped_with_its_ranges)
{
	add("/a/one", 0, 2);
	add("/a/two", 5, FILES_UNITS_MAX - 2);
	files_draft_drop(&draft);
	add("/a/three", 7, FILES_UNITS_MAX - 2);
	write_list();
	cr_assert_eq(files_find(&area, &files), 0);
	cr_assert_eq(files.head->file_count, 2);
	cr_assert_eq(files.ranges[files.files[1].range_first].first, 7);
}

Test(files, order_is_turned_around_from_one_on)
{
	static const char *const names[] = {"/a", "/b", "/c", "/d"};
	static const char *const wanted[] = {"/a", "/d", "/c", "/b"};

	for (uint32_t i = 0; i < 4; i++)
		add(names[i], i, 1);
	files_draft_reverse(&draft, 1);
	write_list();
	cr_assert_eq(files_find(&area, &files), 0);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert_str_eq(path_of(i), wanted[i]);
	cr_assert_eq(files.ranges[files.files[1].range_first].first, 3);
}

/* Each byte of a list in turn is changed: it is read as none, or stays within its bounds. */
Test(files, a_damaged_list_is_none_or_harmless)
{
	uint32_t size;

	add("/a/b/one.so", 3, 4);
	add("/a/b/two.pyc", 0, 0);
	write_list();
	size = area.size;
	for (uint32_t at = 8; at < size; at++) {
		for (int bit = 0; bit < 8; bit++) {
			room[at] ^= (uint8_t)(1 << bit);
			if (!files_find(&area, &files)) {
				for (uint32_t i = 0; i < files.head->file_count; i++) {
					const struct files_file *file = &files.files[i];
					char path[PATH_MAX];

					files_path(&files, file, path);
					cr_assert_leq(file->range_first + file->range_count,
						files.head->range_count);
				}
			}
			room[at] ^= (uint8_t)(1 << bit);
		}
	}
}

Test(files, is_due_where_there_is_none_and_in_fewer_and_fewer_runs)
{
	struct identity identity = {.kind = IDENTITY_SCRIPT, .name = "train.py"};
	static const uint8_t build_id[PROFILE_BUILD_SIZE] = {1};
	struct profile_section *section;
	struct profile profile;

	profile_init(&profile, &identity);
	section = profile_section_make(&profile, build_id, "GPU");
	section->runs = 3;
	cr_assert(files_are_due(&profile, &area));
	add("/a/one", 0, 1);
	write_list();
	cr_assert_not(files_are_due(&profile, &area));
	section->runs = 4;
	cr_assert(files_are_due(&profile, &area));
	section->runs = 5;
	cr_assert_not(files_are_due(&profile, &area));
}
