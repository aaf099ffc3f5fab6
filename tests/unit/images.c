/* Lists of images in a profile's extension area. */
#include "profile/images.h"
#include "profile/extension.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static _Alignas(8) uint8_t room[PROFILE_EXTENSION_MAX];
static struct profile_extension area;
static struct images_draft draft;
static struct profile profile;
static uint64_t key;

static void make(void)
{
	struct identity identity = {.kind = IDENTITY_SCRIPT, .name = "train.py"};
	static const uint8_t build_id[PROFILE_BUILD_SIZE] = {1, 2};

	area = (struct profile_extension){.data = room, .room = sizeof(room)};
	profile_init(&profile, &identity);
	profile_section_make(&profile, build_id, "GPU");
	key = images_key(build_id, "GPU");
	images_draft_begin(&draft);
}

TestSuite(images, .init = make);

static void add_file(const char *path)
{
	draft.files[draft.file_count++] = (struct image_file){
		.kind = IMAGE_FILE_BUILD_ID,
		.path = images_draft_text(&draft, path),
		.identity = {7},
	};
}

static void add_image(uint32_t file, uint64_t offset)
{
	draft.images[draft.image_count++] = (struct image){
		.size = 5000,
		.offset = offset,
		.wrapper = file == IMAGES_NO_FILE ? IMAGES_NO_OFFSET : offset + 8000,
		.digest_size = file == IMAGES_NO_FILE ? 5000 : IMAGES_DIGEST_PART,
		.file = file,
		.entry = IMAGE_LIBRARY_DATA,
		.form = file == IMAGES_NO_FILE ? IMAGE_ELF : IMAGE_WRAPPED,
		.option_count = 1,
		.options = {{1, 1}},
	};
}

static void add_kernel(uint32_t image, const char *name)
{
	draft.kernels[draft.kernel_count++] = (struct image_kernel){
		.name = images_draft_text(&draft, name),
		.image = image,
	};
}

static void fill(void)
{
	add_file("/opt/lib/libtorch_cuda.so");
	add_image(0, 4096);
	add_image(IMAGES_NO_FILE, 0);
	add_image(0, 16384);
	add_kernel(2, "third_first");
	add_kernel(0, "first_first");
	add_kernel(2, "third_second");
	add_kernel(0, "first_second");
}

Test(images, a_list_comes_back_with_its_kernels_by_image)
{
	static const char *const names[] = {
		"first_first", "first_second", "third_first", "third_second"};
	struct images list;

	fill();
	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	cr_assert_eq(images_find(&area, key, &list), 0);
	cr_assert_eq(list.head->image_count, 3);
	cr_assert_str_eq(list.text + list.files[0].path, "/opt/lib/libtorch_cuda.so");
	for (uint32_t i = 0; i < 4; i++)
		cr_assert_str_eq(list.text + list.kernels[i].name, names[i]);
	cr_assert_eq(list.images[1].kernel_count, 0);
	cr_assert_eq(list.images[2].kernel_first, 2);
	cr_assert_eq(list.images[2].kernel_count, 2);
	cr_assert_eq(list.images[2].offset, 16384);
}

Test(images, an_empty_list_is_a_list)
{
	struct images list;

	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	cr_assert_eq(images_find(&area, key, &list), 0);
	cr_assert_eq(list.head->image_count, 0);
}

Test(images, each_section_has_its_own)
{
	static const uint8_t build_id[PROFILE_BUILD_SIZE] = {1, 2};
	uint64_t other = images_key(build_id, "another GPU");
	struct images list;

	fill();
	cr_assert_neq(key, other);
	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	cr_assert_eq(images_find(&area, other, &list), PROFILE_NONE);
	profile_section_make(&profile, build_id, "another GPU");
	cr_assert_eq(images_write(&area, &profile, other, &draft), 0);
	cr_assert_eq(images_find(&area, key, &list), 0);
	cr_assert_eq(images_find(&area, other, &list), 0);
}

Test(images, a_list_takes_its_own_ones_place_and_leaves_other_records)
{
	struct extension_record record;
	uint32_t cursor = 0, count = 0;

	fill();
	cr_assert_eq(extension_add(&area, 77, "kept", 4), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	while (extension_next(&area, &cursor, &record))
		count++;
	cr_assert_eq(count, 2);
	cr_assert(extension_is_walkable(area.data, area.size));
}

Test(images, a_list_without_a_section_goes)
{
	struct images list;

	fill();
	cr_assert_eq(images_write(&area, &profile, 99, &draft), 0);
	cr_assert_eq(images_find(&area, 99, &list), 0);
	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	cr_assert_eq(images_find(&area, 99, &list), PROFILE_NONE);
	cr_assert_eq(images_find(&area, key, &list), 0);
}

Test(images, where_room_is_short_this_run_matters_more)
{
	static const uint8_t build_id[PROFILE_BUILD_SIZE] = {1, 2};
	uint64_t other = images_key(build_id, "another GPU");
	struct images list;

	fill();
	area.room = 1200;
	profile_section_make(&profile, build_id, "another GPU");
	cr_assert_eq(images_write(&area, &profile, other, &draft), 0);
	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	cr_assert_eq(images_find(&area, other, &list), PROFILE_NONE);
	cr_assert_eq(images_find(&area, key, &list), 0);
	area.room = 400;
	cr_assert_eq(images_write(&area, &profile, key, &draft), -ENOSPC);
	cr_assert_eq(area.size, 0);
}

Test(images, texts_that_no_terminal_should_see_are_not_kept)
{
	cr_assert_eq(images_draft_text(&draft, ""), 0);
	cr_assert_eq(images_draft_text(&draft, "a\033[2J"), 0);
	cr_assert_eq(images_draft_text(&draft, "a\nb"), 0);
	cr_assert_eq(images_draft_text(&draft, "/home/j\xc3\xbcrgen"), 1);
	while (images_draft_text(&draft, "0123456789abcdef"))
		cr_assert_leq(draft.text_size, IMAGES_TEXT_MAX);
}

/* Each row spoils one thing of a good list; none may be written. */
Test(images, what_is_not_sound)
{
	struct images list;

#define SPOILED(what, statement)                                                                   \
	do {                                                                                       \
		make();                                                                            \
		fill();                                                                            \
		statement;                                                                         \
		cr_expect_eq(images_write(&area, &profile, key, &draft), -EINVAL, what);           \
		cr_expect_eq(images_find(&area, key, &list), PROFILE_NONE, what);                  \
		cr_expect_eq(area.size, 0, what);                                                  \
	} while (0)
	SPOILED("file's kind", draft.files[0].kind = IMAGE_FILE_KIND_COUNT);
	SPOILED("file's path", draft.files[0].path = draft.text_size);
	SPOILED("image's file", draft.images[0].file = 1);
	SPOILED("no size", draft.images[0].size = 0);
	SPOILED("size", draft.images[0].size = IMAGES_SIZE_MAX + 1);
	SPOILED("offset", draft.images[0].offset = UINT64_MAX - 100);
	SPOILED("wrapper", draft.images[0].wrapper = UINT64_MAX - 1);
	SPOILED("no digest", draft.images[0].digest_size = 0);
	SPOILED("longer digest", draft.images[0].digest_size = 5001);
	SPOILED("heap digest", draft.images[1].digest_size = 4096);
	SPOILED("heap wrapper", draft.images[1].wrapper = 0);
	SPOILED("entry", draft.images[0].entry = IMAGE_ENTRY_COUNT);
	SPOILED("form", draft.images[0].form = 0);
	SPOILED("flags", draft.images[0].flags = 128);
	SPOILED("age", draft.images[0].age = IMAGES_AGE_MAX + 1);
	SPOILED("device", draft.images[0].device = -2);
	SPOILED("options", draft.images[0].option_count = IMAGES_OPTIONS_MAX + 1);
	SPOILED("JIT options", draft.images[0].jit_count = IMAGES_JIT_OPTIONS_MAX + 1);
	SPOILED("kernel's image", draft.kernels[0].image = 3);
	SPOILED("kernel's name", draft.kernels[0].name = 0);
	SPOILED("kernel's age", draft.kernels[0].age = IMAGES_AGE_MAX + 1);
	SPOILED("kernel's flags", draft.kernels[0].flags = 2);
	SPOILED("text", draft.text[draft.text_size - 1] = 'x');
	SPOILED("control byte", draft.text[draft.text_size - 2] = '\033');
	SPOILED("images", draft.image_count = IMAGES_MAX + 1);
#undef SPOILED
}

Test(images, a_damaged_list_is_none)
{
	struct images list;
	uint32_t size;

	fill();
	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	size = area.size;
	for (uint32_t i = 8; i < size; i++) {
		struct images found;

		room[i] ^= 0x80;
		/* Whatever it now says stays inside. */
		if (!images_find(&area, key, &found))
			for (uint32_t at = 0; at < found.head->kernel_count; at++)
				cr_assert_lt(found.kernels[at].name, found.head->text_size);
		room[i] ^= 0x80;
	}
	cr_assert_eq(images_find(&area, key, &list), 0);
}

Test(images, a_list_of_an_older_version_is_none)
{
	uint32_t cursor = 0;
	struct extension_record record;
	struct images list;

	fill();
	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	cr_assert(extension_next(&area, &cursor, &record));
	((struct images_head *)record.payload)->version = IMAGES_VERSION - 1;
	cr_assert_eq(images_find(&area, key, &list), PROFILE_NONE);
	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	cr_assert_eq(images_find(&area, key, &list), 0);
}

Test(images, why_one_is_not_loaded_ahead)
{
	char text[IMAGE_REASON_SIZE];
	struct image image = {.flags = IMAGE_HAS_NO_VALUES, .refused = IMAGES_NO_OPTION};

	cr_assert_str_eq(image_reason(&image, text), "");
	image.flags = IMAGE_HAS_JIT_OPTIONS;
	cr_assert_str_eq(image_reason(&image, text), "jit options: not loaded ahead");
	image.refused = 6;
	cr_assert_str_eq(image_reason(&image, text), "jit option 6: not loaded ahead");
	image.flags = IMAGE_HAS_MORE_OPTIONS;
	cr_assert_str_eq(image_reason(&image, text), "library option 6: not loaded ahead");
	for (uint32_t option = 1; option <= 6; option++)
		cr_assert_not(image_jit_option_is_plain(option));
	cr_assert_not(image_jit_option_is_plain(17));
	cr_assert_not(image_jit_option_is_plain(1000));
}
