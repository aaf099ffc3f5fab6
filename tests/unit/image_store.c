/* The store of images by their content. */
#include "profile/image_store.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char state[] = "/tmp/hearth-store-XXXXXX", store[PROFILE_PATH_MAX];
static char content[10000];
static uint8_t digest[DIGEST_SIZE];
static const void *mapped;

static void fill(int seed)
{
	for (size_t i = 0; i < sizeof(content); i++)
		content[i] = (char)(i * 7 + (size_t)seed);
	digest_of(content, sizeof(content), digest);
}

static void make(void)
{
	char profiles[PROFILE_PATH_MAX];

	cr_assert(mkdtemp(state));
	snprintf(profiles, sizeof(profiles), "%s/profiles", state);
	cr_assert_eq(image_store_folder(profiles, store), 0);
	fill(0);
}

static void clean(void)
{
	image_store_prune(store, 0);
	rmdir(store);
	cr_assert_eq(rmdir(state), 0, "something was left behind");
}

TestSuite(image_store, .init = make, .fini = clean);

static void put(void)
{
	cr_assert_eq(image_store_put(store, digest, content, sizeof(content)), 0);
}

static int map(void)
{
	int rc = image_store_map(store, digest, sizeof(content), &mapped);

	if (!rc) {
		cr_assert_eq(memcmp(mapped, content, sizeof(content)), 0);
		munmap((void *)(uintptr_t)mapped, sizeof(content));
	}
	return rc;
}

static const char *path(void)
{
	static char text[PROFILE_PATH_MAX];

	cr_assert_eq(profile_path(store, digest, text), 0);
	return text;
}

static int count(void)
{
	DIR *folder = opendir(store);
	int files = 0;

	cr_assert(folder);
	for (const struct dirent *entry; (entry = readdir(folder));)
		files += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	closedir(folder);
	return files;
}

Test(image_store, lies_beside_the_profiles)
{
	char folder[PROFILE_PATH_MAX];

	cr_assert_eq(image_store_folder("/a/b/profiles/", folder), 0);
	cr_assert_str_eq(folder, "/a/b/images");
	cr_assert_eq(image_store_folder("/profiles", folder), 0);
	cr_assert_str_eq(folder, "/images");
}

Test(image_store, what_was_put_comes_back)
{
	struct stat file;

	cr_assert_eq(map(), -ENOENT);
	put();
	cr_assert_eq(map(), 0);
	cr_assert_eq(stat(path(), &file), 0);
	cr_assert_eq(file.st_mode & 07777, 0600);
	cr_assert_eq(stat(store, &file), 0);
	cr_assert_eq(file.st_mode & 07777, 0700);
	put();
	cr_assert_eq(count(), 1);
}

Test(image_store, what_is_not_what_it_is_named_counts_as_none_and_is_put_right)
{
	int fd;

	put();
	fd = open(path(), O_WRONLY);
	cr_assert_eq(pwrite(fd, "x", 1, 5000), 1);
	close(fd);
	cr_assert_eq(map(), -ESTALE);
	put();
	cr_assert_eq(map(), 0);
	cr_assert_eq(truncate(path(), 100), 0);
	cr_assert_eq(map(), -ESTALE);
	put();
	cr_assert_eq(map(), 0);
}

Test(image_store, what_others_could_have_written_counts_as_none)
{
	char aside[PROFILE_PATH_MAX + 2];

	put();
	cr_assert_eq(chmod(path(), 0620), 0);
	cr_assert_eq(map(), -ESTALE);
	cr_assert_eq(chmod(path(), 0602), 0);
	cr_assert_eq(map(), -ESTALE);
	cr_assert_eq(chmod(path(), 0644), 0);
	cr_assert_eq(map(), 0);
	snprintf(aside, sizeof(aside), "%s-", path());
	cr_assert_eq(rename(path(), aside), 0);
	cr_assert_eq(symlink(aside, path()), 0);
	cr_assert_eq(map(), -ESTALE);
	unlink(path());
	cr_assert_eq(mkfifo(path(), 0600), 0);
	cr_assert_eq(map(), -ESTALE);
	unlink(path());
	unlink(aside);
}

Test(image_store, the_longest_unused_goes_first)
{
	static const time_t days[] = {3, 1, 2};
	uint8_t first[DIGEST_SIZE];

	for (int i = 0; i < 3; i++) {
		struct timespec times[2] = {
			{.tv_sec = days[i] * 86400}, {.tv_sec = days[i] * 86400}};

		fill(i);
		put();
		cr_assert_eq(utimensat(AT_FDCWD, path(), times, 0), 0);
		if (!i)
			memcpy(first, digest, sizeof(first));
	}
	/* Used again: no longer the second to go. */
	put();
	cr_assert_eq(image_store_prune(store, 2 * sizeof(content)), 1);
	cr_assert_eq(map(), 0);
	cr_assert_eq(image_store_prune(store, sizeof(content)), 1);
	cr_assert_eq(map(), 0);
	memcpy(digest, first, sizeof(digest));
	cr_assert_eq(map(), -ENOENT);
}

Test(image_store, marking_as_used_once_a_day)
{
	struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct stat before, after;

	image_store_mark(store, digest);
	cr_assert_eq(map(), -ENOENT);
	put();
	cr_assert_eq(stat(path(), &before), 0);
	image_store_mark(store, digest);
	cr_assert_eq(stat(path(), &after), 0);
	cr_assert_eq(memcmp(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim)), 0);
	cr_assert_eq(utimensat(AT_FDCWD, path(), old, 0), 0);
	image_store_mark(store, digest);
	cr_assert_eq(stat(path(), &after), 0);
	cr_assert_geq(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
}

Test(image_store, more_than_it_holds)
{
	cr_assert_eq(image_store_put(store, digest, content, IMAGE_STORE_MAX + 1), -EFBIG);
}

Test(image_store, a_full_disk_leaves_nothing_behind)
{
	cr_assert_eq(symlink("/dev/full", store), 0);
	cr_assert_lt(image_store_put(store, digest, content, sizeof(content)), 0);
	cr_assert_eq(unlink(store), 0);
}
