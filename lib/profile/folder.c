/* The folder of profiles: walking over it, keeping it within its bounds. Runs in the user's process
 * after a new profile was written there, and in tools. Uses getdents64 into the stack, since
 * opendir allocates. */
#include "profile/folder.h"

#include "base/clock.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OLDEST_MAX 32 /* files removed by one pass */
#define PASSES_MAX 64 /* what a folder that somebody filled needs at most, per call */
#define FEW_FILES (PROFILE_FOLDER_MAX / PROFILE_FILE_MAX) /* so many are within any bound */
#define TEMPORARY_MAX_AGE_S 3600                          /* then its writer is dead */

/* What getdents64 fills in; the man page declares it for its callers. */
struct entry {
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

bool folder_is_profile_name(const char *name)
{
	return strlen(name) == DIGEST_SIZE && strspn(name, "0123456789abcdef") == DIGEST_SIZE;
}

int folder_walk(const char *path, folder_visit *visit, void *context)
{
	char buffer[8192] __attribute__((aligned(8)));
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;
	long got;

	if (folder < 0)
		return errno == ENOENT ? 0 : -errno;
	while (!rc && (got = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; !rc && at < got;) {
			const struct entry *entry = (const struct entry *)(buffer + at);

			at += entry->length;
			rc = visit(folder, entry->name, context);
		}
	}
	close(folder);
	return rc;
}

struct old_file {
	char name[DIGEST_SIZE + 1];
	struct timespec used;
	uint64_t size;
};

struct census {
	uint32_t count;
	uint64_t bytes;
	uint32_t oldest_count;
	struct old_file oldest[OLDEST_MAX]; /* the oldest first */
};

static bool is_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

static void note_file(struct census *census, const char *name, const struct stat *file)
{
	uint32_t at = census->oldest_count;

	census->count++;
	census->bytes += (uint64_t)file->st_size;
	while (at > 0 && is_older(&file->st_mtim, &census->oldest[at - 1].used))
		at--;
	if (at == OLDEST_MAX)
		return;
	if (census->oldest_count < OLDEST_MAX)
		census->oldest_count++;
	memmove(&census->oldest[at + 1], &census->oldest[at],
		(census->oldest_count - 1 - at) * sizeof(census->oldest[0]));
	memcpy(census->oldest[at].name, name, DIGEST_SIZE + 1);
	census->oldest[at].used = file->st_mtim;
	census->oldest[at].size = (uint64_t)file->st_size;
}

static int count_entry(int folder, const char *name, void *context)
{
	struct stat file;
	bool is_temporary = !strncmp(name, ".tmp-", strlen(".tmp-"));

	if (!is_temporary && !folder_is_profile_name(name))
		return 0;
	if (status_of_entry(folder, name, &file))
		return 0;
	if (!is_temporary)
		note_file(context, name, &file);
	else if ((uint64_t)file.st_mtim.tv_sec + TEMPORARY_MAX_AGE_S <
		 clock_realtime_us() / 1000000)
		unlinkat(folder, name, 0);
	return 0;
}

/* Removes from one census; false once the folder is within its bounds or nothing can be removed. */
static bool remove_oldest(const char *path, struct census *census, uint32_t programs_max,
	uint64_t bytes_max, int *removed)
{
	int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool is_within = false;
	int before = *removed;

	if (folder < 0)
		return false;
	for (uint32_t i = 0; i < census->oldest_count && !is_within; i++) {
		is_within = census->count <= programs_max && census->bytes <= bytes_max;
		if (is_within || unlinkat(folder, census->oldest[i].name, 0))
			continue;
		census->count--;
		census->bytes -= census->oldest[i].size;
		++*removed;
	}
	close(folder);
	return !is_within && *removed > before;
}

static int count_name(int folder, const char *name, void *context)
{
	uint32_t *count = context;

	++*count;
	return 0;
}

int profile_tidy(const char *path)
{
	uint32_t count = 0;
	int rc = folder_walk(path, count_name, &count);

	if (rc || count <= FEW_FILES)
		return rc;
	return profile_prune(path, PROFILE_PROGRAMS_MAX, PROFILE_FOLDER_MAX);
}

int profile_prune(const char *path, uint32_t programs_max, uint64_t bytes_max)
{
	int removed = 0;

	for (int pass = 0; pass < PASSES_MAX; pass++) {
		struct census census = {0};
		int rc = folder_walk(path, count_entry, &census);

		if (rc)
			return rc;
		if (!remove_oldest(path, &census, programs_max, bytes_max, &removed))
			break;
	}
	return removed;
}
