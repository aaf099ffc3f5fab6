/* Python's compiled modules (touched_modules.h), found as the import system keeps them: in folders
 * __pycache__ (PEP 3147). A module counts that has been read since it was written, by its time of
 * access, and is in memory; where no file has such times (noatime) all that are in memory do. Runs
 * where touched.c does. */
#include "preload/touched_modules.h"

#include "base/clock.h"
#include "base/resident.h"
#include "base/status.h"
#include "profile/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEPTH_MAX 12u
#define ROOTS_MAX 64u
#define ENOUGH 1 /* ends a walk */

struct walk {
	struct files_draft *draft;
	uint64_t end_us;
	bool has_times; /* of access; without them residency alone counts */
	uint32_t depth;
	uint32_t root_count;
	char roots[ROOTS_MAX][256]; /* walked already */
	char path[PATH_MAX];        /* of the folder at hand */
};

/* Where the kernel does not say, its time of access is all that counts. */
static bool is_resident(int folder, const char *name, const struct stat *status, bool has_times)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), answer;

	if (fd < 0)
		return false;
	answer = resident_page(fd, status, 0);
	close(fd);
	return answer == 1 || (answer < 0 && has_times);
}

static bool is_read(const struct stat *status)
{
	return status->st_atim.tv_sec != status->st_mtim.tv_sec
		       ? status->st_atim.tv_sec > status->st_mtim.tv_sec
		       : status->st_atim.tv_nsec > status->st_mtim.tv_nsec;
}

static int note_module(int folder, const char *name, void *context)
{
	static const char suffix[] = ".pyc";
	struct walk *walk = context;
	size_t length = strlen(name), folder_length = strlen(walk->path);
	struct stat status;
	bool is_added;

	if (clock_monotonic_us() > walk->end_us)
		return ENOUGH;
	if (length <= strlen(suffix) || strcmp(name + length - strlen(suffix), suffix) ||
		folder_length + 1 + length >= PATH_MAX || status_of_entry(folder, name, &status) ||
		!S_ISREG(status.st_mode) || (walk->has_times && !is_read(&status)) ||
		!is_resident(folder, name, &status, walk->has_times))
		return 0;
	walk->path[folder_length] = '/';
	memcpy(walk->path + folder_length + 1, name, length + 1);
	is_added = files_draft_add(walk->draft, walk->path, (uint64_t)status.st_size);
	walk->path[folder_length] = '\0';
	return is_added ? 0 : ENOUGH;
}

static bool is_walked(const struct walk *walk)
{
	for (uint32_t i = 0; i < walk->root_count; i++)
		if (!strcmp(walk->roots[i], walk->path))
			return true;
	return false;
}

/* Packages have no dot in their names, and most other files have. */
static int note_entry(int folder, const char *name, void *context)
{
	struct walk *walk = context;
	size_t length = strlen(name), folder_length = strlen(walk->path);
	int rc = 0;

	if (strchr(name, '.') || folder_length + 1 + length >= PATH_MAX || !strcmp(name, "test") ||
		!strcmp(name, "tests") || !strcmp(name, "site-packages") ||
		!strcmp(name, "dist-packages"))
		return 0;
	if (clock_monotonic_us() > walk->end_us)
		return ENOUGH;
	walk->path[folder_length] = '/';
	memcpy(walk->path + folder_length + 1, name, length + 1);
	if (!strcmp(name, "__pycache__")) {
		rc = folder_walk(walk->path, note_module, walk);
	} else if (walk->depth < DEPTH_MAX && !is_walked(walk)) {
		walk->depth++;
		rc = folder_walk(walk->path, note_entry, walk);
		walk->depth--;
	}
	walk->path[folder_length] = '\0';
	return rc == ENOUGH ? rc : 0;
}

/* A folder and what is below it, once. */
static void walk_root(struct walk *walk, const char *path, size_t length)
{
	if (!length || length >= sizeof(walk->roots[0]) || walk->root_count >= ROOTS_MAX)
		return;
	memcpy(walk->path, path, length);
	walk->path[length] = '\0';
	if (is_walked(walk))
		return;
	walk->depth = 0;
	folder_walk(walk->path, note_entry, walk);
	memcpy(walk->roots[walk->root_count++], path, length);
}

/* How long the part of the path is up to and with this folder; 0 where it is not in it. */
static size_t length_with(const char *path, const char *folder)
{
	const char *at = strstr(path, folder);

	return at ? (size_t)(at - path) + strlen(folder) : 0;
}

/* Where packages are installed: ".../site-packages" (PyPA), ".../dist-packages" (Debian). */
static size_t packages_length(const char *folder)
{
	size_t length = length_with(folder, "/site-packages");

	return length ? length : length_with(folder, "/dist-packages");
}

static void walk_all(struct walk *walk, uint32_t object_count)
{
	const struct files_draft *draft = walk->draft;

	for (int pass = 0; pass < 3; pass++) {
		for (uint32_t i = 0; i < object_count; i++) {
			const char *folder = draft->text + draft->files[i].folder;
			size_t packages = packages_length(folder),
			       library = length_with(folder, "/lib-dynload");

			if (!strstr(draft->text + draft->files[i].name, ".cpython-"))
				continue;
			if (pass == 0 && packages && folder[packages])
				walk_root(walk, folder,
					packages + 1 + strcspn(folder + packages + 1, "/"));
			else if (pass == 1 && library)
				walk_root(walk, folder, library - strlen("/lib-dynload"));
			else if (pass == 2 && packages)
				walk_root(walk, folder, packages);
		}
	}
}

void touched_modules(struct files_draft *draft, uint32_t object_count, uint64_t end_us)
{
	struct walk walk = {.draft = draft, .end_us = end_us, .has_times = true};

	walk_all(&walk, object_count);
	if (draft->file_count > object_count)
		return;
	walk = (struct walk){.draft = draft, .end_us = end_us};
	walk_all(&walk, object_count);
}
