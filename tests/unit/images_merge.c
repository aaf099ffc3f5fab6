/* One run after the other: what a program's list of images becomes. */
#include "profile/images_merge.h"
#include "profile/extension.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t build_id[PROFILE_BUILD_SIZE] = {1};
static char folder[] = "/tmp/hearth-images-XXXXXX";
static struct identity identity = {.kind = IDENTITY_SCRIPT, .name = "train.py"};
static struct images_draft seen, merged;
static _Alignas(8) uint8_t room[PROFILE_EXTENSION_MAX];
static struct profile_extension area;
static struct profile profile;
static struct images list;
static uint64_t key;

static void make(void)
{
	key = images_key(build_id, "GPU");
	area = (struct profile_extension){.data = room, .room = sizeof(room)};
	profile_init(&profile, &identity);
	profile_section_make(&profile, build_id, "GPU");
	images_draft_begin(&seen);
}

TestSuite(images_merge, .init = make);

static uint32_t file(char build, const char *path)
{
	seen.files[seen.file_count] = (struct image_file){
		.kind = IMAGE_FILE_BUILD_ID,
		.path = images_draft_text(&seen, path),
		.identity = {(uint8_t)build},
	};
	return seen.file_count++;
}

static uint32_t image(uint32_t in, char content)
{
	seen.images[seen.image_count] = (struct image){
		.digest = {(uint8_t)content},
		.size = 4096,
		.offset = in == IMAGES_NO_FILE ? 0 : (uint64_t)content * 4096,
		.wrapper = IMAGES_NO_OFFSET,
		.digest_size = 4096,
		.file = in,
		.entry = IMAGE_LIBRARY_DATA,
		.form = IMAGE_FATBIN,
		.load_us = 1000,
		.count = 1,
	};
	return seen.image_count++;
}

static void kernel(uint32_t of, const char *name)
{
	seen.kernels[seen.kernel_count++] =
		(struct image_kernel){.name = images_draft_text(&seen, name), .image = of};
}

/* A run's end: `seen` is merged into the list; the next run begins. */
static void end(bool is_new_run)
{
	struct images *old = images_find(&area, key, &list) ? NULL : &list;

	images_merge(old, &seen, is_new_run, &merged);
	cr_assert_eq(images_write(&area, &profile, key, &merged), 0);
	cr_assert_eq(images_find(&area, key, &list), 0);
	images_draft_begin(&seen);
}

/* The first bytes of the digests, in order. */
static const char *order(void)
{
	static char text[IMAGES_MAX + 1];
	uint32_t i;

	for (i = 0; i < list.head->image_count; i++)
		text[i] = (char)list.images[i].digest[0];
	text[i] = '\0';
	return text;
}

Test(images_merge, the_latest_runs_order_counts)
{
	image(IMAGES_NO_FILE, 'a');
	image(file('f', "/lib/one.so"), 'b');
	image(IMAGES_NO_FILE, 'c');
	end(true);
	cr_assert_str_eq(order(), "abc");
	image(IMAGES_NO_FILE, 'c');
	image(IMAGES_NO_FILE, 'd');
	image(file('f', "/lib/one.so"), 'b');
	end(true);
	cr_assert_str_eq(order(), "cdba");
	cr_assert_eq(list.images[2].age, 0);
	cr_assert_eq(list.images[3].age, 1);
	cr_assert_eq(list.head->file_count, 1);
}

Test(images_merge, a_file_is_itself_wherever_it_lies)
{
	image(file('f', "/old/lib.so"), 'a');
	end(true);
	image(file('f', "/new/lib.so"), 'a');
	end(true);
	cr_assert_str_eq(order(), "a");
	cr_assert_eq(list.head->file_count, 1);
	cr_assert_str_eq(list.text + list.files[0].path, "/new/lib.so");
}

Test(images_merge, another_build_at_the_same_path_is_another_file)
{
	image(file('f', "/lib/lib.so"), 'a');
	end(true);
	image(file('g', "/lib/lib.so"), 'a');
	end(true);
	cr_assert_str_eq(order(), "aa");
	cr_assert_eq(list.head->file_count, 2);
	cr_assert_eq(list.images[1].age, 1);
	cr_assert_eq(list.files[list.images[1].file].identity[0], 'f');
}

Test(images_merge, other_options_are_another_image)
{
	image(IMAGES_NO_FILE, 'a');
	end(true);
	seen.images[image(IMAGES_NO_FILE, 'a')].option_count = 1;
	end(true);
	cr_assert_str_eq(order(), "aa");
}

Test(images_merge, what_is_not_asked_for_ages_out)
{
	kernel(image(file('f', "/lib/one.so"), 'a'), "gone");
	end(true);
	for (uint32_t run = 1; run <= IMAGES_AGE_MAX; run++) {
		image(IMAGES_NO_FILE, 'b');
		end(true);
		cr_assert_str_eq(order(), "ba");
		cr_assert_eq(list.images[1].age, run);
		cr_assert_eq(list.head->kernel_count, 1);
	}
	image(IMAGES_NO_FILE, 'b');
	end(true);
	cr_assert_str_eq(order(), "b");
	cr_assert_eq(list.head->kernel_count, 0);
	cr_assert_eq(list.head->file_count, 0);
	cr_assert_eq(list.head->text_size, 1);
}

Test(images_merge, a_run_that_loaded_nothing_ages_too)
{
	image(IMAGES_NO_FILE, 'a');
	end(true);
	for (uint32_t run = 0; run <= IMAGES_AGE_MAX; run++)
		end(true);
	cr_assert_eq(list.head->image_count, 0);
}

Test(images_merge, one_run_that_is_written_twice_is_one)
{
	image(IMAGES_NO_FILE, 'a');
	end(true);
	image(IMAGES_NO_FILE, 'b');
	end(true);
	image(IMAGES_NO_FILE, 'b');
	image(IMAGES_NO_FILE, 'c');
	end(false);
	cr_assert_str_eq(order(), "bca");
	cr_assert_eq(list.images[2].age, 1);
}

Test(images_merge, kernels_age_only_in_runs_that_ask_for_their_image)
{
	uint32_t at = image(IMAGES_NO_FILE, 'a');

	kernel(at, "always");
	kernel(at, "once");
	end(true);
	image(IMAGES_NO_FILE, 'b');
	end(true);
	cr_assert_eq(list.head->kernel_count, 2);
	cr_assert_eq(list.kernels[1].age, 0);
	for (uint32_t run = 1; run <= IMAGES_AGE_MAX; run++) {
		kernel(image(IMAGES_NO_FILE, 'a'), "always");
		end(true);
		cr_assert_eq(list.images[0].kernel_count, 2);
		cr_assert_str_eq(list.text + list.kernels[1].name, "once");
		cr_assert_eq(list.kernels[0].age, 0);
		cr_assert_eq(list.kernels[1].age, run);
	}
	kernel(image(IMAGES_NO_FILE, 'a'), "always");
	end(true);
	cr_assert_eq(list.images[0].kernel_count, 1);
}

Test(images_merge, a_load_time_changes_with_its_order_of_magnitude)
{
	static const struct {
		uint32_t now, expected;
	} rows[] = {{1999, 1000}, {501, 1000}, {0, 1000}, {2001, 2001}, {5, 5}, {6, 5}};

	image(IMAGES_NO_FILE, 'a');
	end(true);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		seen.images[image(IMAGES_NO_FILE, 'a')].load_us = rows[i].now;
		end(true);
		cr_expect_eq(list.images[0].load_us, rows[i].expected, "%u", rows[i].now);
	}
}

Test(images_merge, full_lists_stay_sound)
{
	char name[32];

	for (uint32_t run = 0; run < 4; run++) {
		for (uint32_t i = 0; i < IMAGES_MAX; i++) {
			uint32_t in =
				i % 3 ? file((char)(run * 40 + i), "/lib/x.so") : IMAGES_NO_FILE;

			if (seen.file_count == IMAGES_FILES_MAX)
				seen.file_count--;
			if (in != IMAGES_NO_FILE && in >= seen.file_count)
				in = 0;
			seen.images[image(in, 'x')].digest[1] = (uint8_t)(run * 7 + i);
		}
		while (seen.kernel_count < IMAGES_KERNELS_MAX) {
			snprintf(name, sizeof(name), "kernel_%u_%u", run, seen.kernel_count);
			kernel(seen.kernel_count % IMAGES_MAX, name);
		}
		end(true);
		cr_assert_eq(list.head->image_count, IMAGES_MAX);
	}
}

static struct stat status(void)
{
	char path[PROFILE_PATH_MAX];
	struct stat found;

	cr_assert_eq(profile_path(folder, identity.digest, path), 0);
	cr_assert_eq(stat(path, &found), 0);
	return found;
}

Test(images_merge, learning_writes_what_changed_and_nothing_else)
{
	struct profile_extension read = {.data = room, .room = sizeof(room)};
	struct stat first, second;

	cr_assert(mkdtemp(folder));
	image(IMAGES_NO_FILE, 'a');
	cr_assert_eq(images_learn(folder, NULL, &identity, key, &seen, true), PROFILE_NONE);
	cr_assert_eq(extension_add(&area, 77, "kept", 4), 0);
	cr_assert_eq(profile_write(folder, &profile, &area), 0);
	cr_assert_eq(images_learn(folder, NULL, &identity, key, &seen, true), 0);
	first = status();
	cr_assert_eq(profile_read(folder, identity.digest, &profile, &read), 0);
	cr_assert_eq(images_find(&read, key, &list), 0);
	cr_assert_eq(list.head->image_count, 1);
	cr_assert_eq(read.size, first.st_size - sizeof(profile));
	cr_assert_eq(images_learn(folder, NULL, &identity, key, &seen, true), 0);
	second = status();
	cr_assert_eq(first.st_ino, second.st_ino, "written though nothing had changed");
	image(IMAGES_NO_FILE, 'b');
	cr_assert_eq(images_learn(folder, NULL, &identity, key, &seen, true), 0);
	cr_assert_eq(profile_read(folder, identity.digest, &profile, &read), 0);
	cr_assert_eq(images_find(&read, key, &list), 0);
	cr_assert_str_eq(order(), "ab");
	profile_prune(folder, 0, 0);
	rmdir(folder);
}
