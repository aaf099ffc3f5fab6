/* Finding the content of recorded images again, and telling whether a call asks for one. */
#include "driver/abi.h"
#include "preload/image_call.h"
#include "preload/image_file.h"
#include "profile/extension.h"
#include "profile/image_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OFFSET 5000u
#define SIZE 9000u

static char root[] = "/tmp/hearth-source-XXXXXX", store[PROFILE_PATH_MAX];
static struct image_bases bases;
static _Alignas(8) uint8_t room[1 << 16];
static struct profile_extension area;
static struct profile profile;
static struct images_draft draft;
static struct images list;
static struct image_source source;
static char content[OFFSET + SIZE + 10];

static const char *in_root(const char *name)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void write_file(const char *name)
{
	int fd = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_eq(write(fd, content, sizeof(content)), sizeof(content));
	close(fd);
}

/* The list is of one image: the fat binary at OFFSET of a plain file, or a cubin on the heap. */
static void record(const char *name)
{
	struct image image = {
		.size = SIZE,
		.offset = name ? OFFSET : 0,
		.wrapper = IMAGES_NO_OFFSET,
		.digest_size = SIZE,
		.file = name ? 0 : IMAGES_NO_FILE,
		.entry = IMAGE_LIBRARY_DATA,
		.form = IMAGE_FATBIN,
	};
	const uint64_t key = 1;

	images_draft_begin(&draft);
	if (name) {
		int fd = open(in_root(name), O_RDONLY | O_CLOEXEC);

		cr_assert_eq(image_file_identify(fd, &draft.files[0]), 0);
		close(fd);
		draft.file_count = 1;
		draft.files[0].path = images_draft_text(&draft, in_root(name));
		draft.files[0].from_started = images_draft_text(&draft, "../lib/x.so");
		draft.files[0].from_executable = images_draft_text(&draft, "../share/x.so");
	}
	digest_of(content + OFFSET, SIZE, image.digest);
	draft.images[draft.image_count++] = image;
	area.size = 0;
	cr_assert_eq(images_write(&area, &profile, key, &draft), 0);
	cr_assert_eq(images_find(&area, key, &list), 0);
}

static void make(void)
{
	static const char *const folders[] = {"lib", "bin", "share", "a"};
	struct fatbin_header header = {FATBIN_MAGIC, 1, sizeof(header), SIZE - sizeof(header)};

	cr_assert(mkdtemp(root));
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		cr_assert_eq(mkdir(in_root(folders[i]), 0700), 0);
	snprintf(store, sizeof(store), "%s/images", root);
	snprintf(bases.started, sizeof(bases.started), "%s/bin", root);
	snprintf(bases.executable, sizeof(bases.executable), "%s/a", root);
	area = (struct profile_extension){.data = room, .room = sizeof(room)};
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (char)(i * 31);
	memcpy(content + OFFSET, &header, sizeof(header));
}

static void clean(void)
{
	char command[64];

	image_source_close(&source);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	cr_assert_eq(system(command), 0);
}

TestSuite(image_source, .init = make, .fini = clean);

static int open_source(void)
{
	return image_source_open(&list, 0, &bases, store, &source);
}

static void expect_content(void)
{
	cr_assert_eq(open_source(), 0);
	cr_assert_eq(source.size, SIZE);
	cr_assert_arr_eq(source.data, content + OFFSET, SIZE);
}

Test(image_source, where_it_was)
{
	write_file("a/x.so");
	record("a/x.so");
	expect_content();
}

Test(image_source, in_a_copied_tree)
{
	write_file("a/x.so");
	record("a/x.so");
	unlink(in_root("a/x.so"));
	cr_assert_eq(open_source(), -ENOENT);
	write_file("share/x.so");
	expect_content();
	image_source_close(&source);
	unlink(in_root("share/x.so"));
	write_file("lib/x.so");
	expect_content();
}

Test(image_source, another_file_at_its_path_is_passed_over)
{
	write_file("a/x.so");
	record("a/x.so");
	write_file("lib/x.so");
	cr_assert_eq(truncate(in_root("a/x.so"), sizeof(content) - 1), 0);
	expect_content();
	image_source_close(&source);
	cr_assert_eq(unlink(in_root("a/x.so")), 0);
	cr_assert_eq(mkfifo(in_root("a/x.so"), 0600), 0);
	expect_content();
}

Test(image_source, other_content_is_stale)
{
	write_file("a/x.so");
	record("a/x.so");
	content[OFFSET + SIZE - 1] ^= 1;
	write_file("a/x.so");
	cr_assert_eq(open_source(), -ESTALE);
}

Test(image_source, from_the_store)
{
	uint8_t digest[DIGEST_SIZE];

	record(NULL);
	cr_assert_eq(open_source(), -ENOENT);
	digest_of(content + OFFSET, SIZE, digest);
	cr_assert_eq(image_store_put(store, digest, content + OFFSET, SIZE), 0);
	expect_content();
}

static bool asks(enum image_entry entry, const void *code, int option)
{
	struct image_call call;
	const void *value = NULL;

	image_call_begin(&call, entry, code, NULL, 0, NULL, NULL, &option, &value, option ? 1 : 0);
	image_call_look(&call);
	return image_call_is(&call, &list, 0, &source);
}

Test(image_source, what_a_call_asks_for)
{
	struct fatbin_wrapper wrapper = {FATBIN_WRAPPER_MAGIC, 1, content + OFFSET, NULL};
	char *other = content + OFFSET;
	uint8_t digest[DIGEST_SIZE];
	char *copy = malloc(SIZE);

	record(NULL);
	digest_of(other, SIZE, digest);
	cr_assert_eq(image_store_put(store, digest, other, SIZE), 0);
	expect_content();
	memcpy(copy, other, SIZE);
	cr_assert(asks(IMAGE_LIBRARY_DATA, copy, 0));
	cr_assert_not(asks(IMAGE_MODULE_DATA, copy, 0));
	cr_assert_not(asks(IMAGE_LIBRARY_DATA, copy, 1));
	cr_assert_not(asks(IMAGE_LIBRARY_DATA, &wrapper, 0));
	cr_assert_not(asks(IMAGE_LIBRARY_DATA, NULL, 0));
	cr_assert_not(asks(IMAGE_LIBRARY_DATA, "x", 0));
	copy[SIZE - 1] ^= 1;
	cr_assert_not(asks(IMAGE_LIBRARY_DATA, copy, 0));
	free(copy);
}

/* What claims to be longer than it is must not be read beyond. */
Test(image_source, a_call_with_less_than_it_says)
{
	long page = sysconf(_SC_PAGESIZE);
	char *end = mmap(
		NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fatbin_header header = {FATBIN_MAGIC, 1, sizeof(header), SIZE};
	uint8_t digest[DIGEST_SIZE];

	record(NULL);
	digest_of(content + OFFSET, SIZE, digest);
	cr_assert_eq(image_store_put(store, digest, content + OFFSET, SIZE), 0);
	expect_content();
	cr_assert_eq(mprotect(end + page, (size_t)page, PROT_NONE), 0);
	end += page;
	memcpy(end - sizeof(header), &header, sizeof(header));
	cr_assert_not(asks(IMAGE_LIBRARY_DATA, end - sizeof(header), 0));
	end[-1] = '\0';
	end[-2] = end[-3] = 'x';
	cr_assert_not(asks(IMAGE_LIBRARY_DATA, end - 3, 0));
}
