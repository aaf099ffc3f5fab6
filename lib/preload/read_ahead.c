/* Reading ahead (read_ahead.h). Two threads of our own, with all signals blocked: one for mapped
 * objects, one for files that are read as a whole, since opening thousands of those takes as long
 * as reading the others. They call neither the driver nor the loader, allocate nothing, and end by
 * themselves; the program's end does not wait for them. */
#include "preload/read_ahead.h"

#include "base/clock.h"
#include "base/resident.h"
#include "base/status.h"
#include "preload/situation.h"
#include "preload/threads.h"
#include "profile/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* linux/close_range.h, linux/fs.h and linux/ioprio.h, which older headers lack. */
#define UNSHARE_DESCRIPTORS 2u /* CLOSE_RANGE_UNSHARE */
#define NUMBER_CLOSE_RANGE 436 /* x86-64 */
#define WHO_THREAD 1           /* IOPRIO_WHO_PROCESS: one thread */
#define LOWEST_BEST_EFFORT ((2 << 13) | 7)

#define DISK_US 100 /* no disk is faster, and memory is */
#define PIECE (UINT64_C(2) << 20)
#define WINDOW (UINT64_C(4) << 20)

/* So many files are looked at before anything is read: all in memory means a warm start. */
#define SAMPLES 48u

struct list {
	_Alignas(8) uint8_t data[PROFILE_EXTENSION_MAX];
};

static struct list *list;
static struct files files;
static uint32_t users; /* of the list: the last one drops it */
static uint32_t is_stale;

static void drop(void)
{
	if (!__atomic_sub_fetch(&users, 1, __ATOMIC_SEQ_CST))
		munmap(list, sizeof(*list));
}

/* A file of the list. */
struct target {
	const struct files_file *file;
	struct stat status;
	int fd;
};

/* Opens a file if it is still the one of the list. The caller closes it. */
static bool open_target(const struct files_file *file, struct target *ret_target)
{
	char path[PATH_MAX];

	if (!files_path(&files, file, path))
		return false;
	ret_target->file = file;
	ret_target->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (ret_target->fd < 0)
		return false;
	if (!status_of_fd(ret_target->fd, &ret_target->status) &&
		S_ISREG(ret_target->status.st_mode) &&
		(uint64_t)ret_target->status.st_size == file->size)
		return true;
	__atomic_store_n(&is_stale, 1, __ATOMIC_RELAXED);
	close(ret_target->fd);
	return false;
}

/* Asks for a piece of a file that is not in memory, as far as that is known; of what is there the
 * kernel reads nothing. Not every scheduler knows priorities, so no more than a window is ever
 * under way: what the program itself reads meanwhile waits for that at most. */
static bool ask(const struct target *target, uint64_t offset, uint64_t size, uint64_t *under_way)
{
	char byte;

	if (resident_page(target->fd, &target->status, offset) == 1)
		return false;
	posix_fadvise(target->fd, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
	*under_way += size;
	if (*under_way < WINDOW)
		return true;
	/* Waits until it has come. */
	if (pread(target->fd, &byte, 1, (off_t)(offset + size - 1)) < 0) {
		/* then it does not come */
	}
	*under_way = 0;
	return true;
}

static void read_ranges(const struct target *target, uint64_t *under_way)
{
	for (uint32_t i = 0; i < target->file->range_count; i++) {
		const struct files_range *range = &files.ranges[target->file->range_first + i];
		uint64_t at = (uint64_t)range->first * FILES_UNIT,
			 end = at + (uint64_t)range->count * FILES_UNIT;

		for (; at < end; at += PIECE)
			ask(target, at, end - at < PIECE ? end - at : PIECE, under_way);
	}
}

/* A compiled module's source is looked at too when it is imported: that takes its inode. */
static void look_at_source(const struct files_file *file)
{
	static const char cache[] = "/__pycache__";
	char path[PATH_MAX];
	struct stat status;
	size_t folder, name;

	if (!files_path(&files, file, path))
		return;
	folder = strlen(files.text + file->folder);
	name = strcspn(path + folder + 1, ".");
	if (folder < strlen(cache) || strncmp(path + folder - strlen(cache), cache, strlen(cache)))
		return;
	memmove(path + folder - strlen(cache) + 1, path + folder + 1, name);
	memcpy(path + folder - strlen(cache) + 1 + name, ".py", sizeof(".py"));
	status_of_path(path, &status);
}

static void read_whole(const struct target *target, uint64_t *under_way)
{
	uint64_t size = target->file->size;

	if (ask(target, 0, size < FILES_WHOLE_MAX ? size : FILES_WHOLE_MAX, under_way))
		look_at_source(target->file);
}

static void read_files(bool is_whole)
{
	uint64_t under_way = 0;
	struct target target;

	syscall(SYS_ioprio_set, WHO_THREAD, 0, LOWEST_BEST_EFFORT);
	for (uint32_t i = 0; i < files.head->file_count; i++) {
		if (!files.files[i].range_count != is_whole ||
			!open_target(&files.files[i], &target))
			continue;
		if (is_whole)
			read_whole(&target, &under_way);
		else
			read_ranges(&target, &under_way);
		close(target.fd);
	}
}

/* A descriptor table of this thread's own, with nothing in it. */
static bool unshare_descriptors(void)
{
	return !syscall(NUMBER_CLOSE_RANGE, 0U, ~0U, UNSHARE_DESCRIPTORS);
}

static void *run_whole(void *unused)
{
	if (unshare_descriptors())
		read_files(true);
	drop();
	return NULL;
}

/* Where the kernel does not say, the time tells: a page in memory is read in a microsecond. */
static bool is_missing(const struct target *target, uint64_t offset)
{
	int answer = resident_page(target->fd, &target->status, offset);
	uint64_t start_us;
	char byte;

	if (answer >= 0)
		return !answer;
	start_us = clock_monotonic_us();
	return pread(target->fd, &byte, 1, (off_t)offset) == 1 &&
	       clock_monotonic_us() - start_us > DISK_US;
}

/* Looks at files all over the list, and in each at the middle range. */
static bool is_cold(void)
{
	uint32_t step = files.head->file_count / SAMPLES + 1;
	bool is_found = false;

	for (uint32_t i = 0; i < files.head->file_count && !is_found; i += step) {
		const struct files_file *file = &files.files[i];
		const struct files_range *middle =
			files.ranges + file->range_first + file->range_count / 2;
		struct target target;

		if (!open_target(file, &target))
			continue;
		is_found = is_missing(
			&target, file->range_count ? (uint64_t)middle->first * FILES_UNIT : 0);
		close(target.fd);
	}
	return is_found;
}

/* A program that forks before it uses CUDA is left alone: Python says so where threads live. */
static bool is_wanted(const struct profile *profile)
{
	const struct profile_section *latest = NULL;

	for (uint32_t i = 0; i < profile->section_count; i++)
		if (!latest || profile->sections[i].learned_s > latest->learned_s)
			latest = &profile->sections[i];
	return latest && (latest->used & 1) && !latest->forked_after_start &&
	       !latest->forked_after_lookup;
}

static bool read_list(void)
{
	struct profile_extension extension = {.data = list->data, .room = PROFILE_EXTENSION_MAX};
	struct profile profile;

	return !profile_find(situation_profiles(), PROFILE_SYSTEM_DIR, situation_identity()->digest,
		       &profile, &extension) &&
	       is_wanted(&profile) && !files_find(&extension, &files);
}

static void *run(void *unused)
{
	if (unshare_descriptors() && read_list() && is_cold()) {
		__atomic_add_fetch(&users, 1, __ATOMIC_SEQ_CST);
		if (threads_start(run_whole, NULL))
			drop();
		read_files(false);
	}
	drop();
	return NULL;
}

/* Looks for a profile only: reading it is the thread's. */
static bool has_profile(void)
{
	const struct identity *identity = situation_identity();
	const char *profiles = situation_profiles();
	char path[PROFILE_PATH_MAX];

	return identity && profiles && !profile_path(profiles, identity->digest, path) &&
	       !access(path, R_OK);
}

void read_ahead_begin(void)
{
	int kept = errno;

	if (situation_has_files() && has_profile()) {
		list = mmap(NULL, sizeof(*list), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		users = 1;
		if (list != MAP_FAILED && threads_start(run, NULL))
			drop();
	}
	errno = kept;
}

bool read_ahead_is_stale(void)
{
	return __atomic_load_n(&is_stale, __ATOMIC_RELAXED);
}
