/* Reading ahead (read_ahead.h). Two threads of our own, with all signals blocked: one for mapped
 * objects, one for files that are read as a whole, since opening thousands of those takes as long
 * as reading the others. They call neither the driver nor the loader, allocate nothing, and end by
 * themselves; the program's end does not wait for them. */
#include "preload/read_ahead.h"

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
#include <sys/uio.h>
#include <unistd.h>

/* linux/close_range.h, linux/fs.h and linux/ioprio.h, which older headers lack. */
#define UNSHARE_DESCRIPTORS 2u /* CLOSE_RANGE_UNSHARE */
#define NUMBER_CLOSE_RANGE 436 /* x86-64 */
#define NUMBER_PREADV2 327
#define NOT_WAITING 8 /* RWF_NOWAIT */
#define WHO_THREAD 1  /* IOPRIO_WHO_PROCESS: one thread */
#define LOWEST_BEST_EFFORT ((2 << 13) | 7)

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

/* Is the byte there in memory? A negative errno where the file system cannot tell without reading;
 * then it is to be read: of what is in memory the kernel reads nothing. */
static int is_resident(int fd, uint64_t offset)
{
	char byte;
	struct iovec place = {&byte, 1};
	long got = syscall(NUMBER_PREADV2, fd, &place, 1UL, offset, 0UL, NOT_WAITING);

	if (got >= 0)
		return 1; /* also beyond the end: there is nothing to read */
	return errno == EAGAIN ? 0 : -errno;
}

/* Opens a file if it is still the one of the list; -1 otherwise. */
static int open_file(const struct files_file *file)
{
	char path[PATH_MAX];
	struct stat status;
	int fd;

	if (!files_path(&files, file, path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -1;
	if (!status_of_fd(fd, &status) && S_ISREG(status.st_mode) &&
		(uint64_t)status.st_size == file->size)
		return fd;
	__atomic_store_n(&is_stale, 1, __ATOMIC_RELAXED);
	close(fd);
	return -1;
}

/* Asks for a piece of a file. Not every scheduler knows priorities, so no more than a window is
 * ever under way: what the program itself reads meanwhile waits for that at most. */
static void ask(int fd, uint64_t offset, uint64_t size, uint64_t *under_way)
{
	char byte;

	posix_fadvise(fd, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
	*under_way += size;
	if (*under_way < WINDOW)
		return;
	/* Waits until it has come. */
	if (pread(fd, &byte, 1, (off_t)(offset + size - 1)) < 0) {
		/* then it does not come */
	}
	*under_way = 0;
}

static void read_ranges(const struct files_file *file, int fd, uint64_t *under_way)
{
	for (uint32_t i = 0; i < file->range_count; i++) {
		const struct files_range *range = &files.ranges[file->range_first + i];
		uint64_t at = (uint64_t)range->first * FILES_UNIT,
			 end = at + (uint64_t)range->count * FILES_UNIT;

		if (is_resident(fd, at) == 1)
			continue;
		for (; at < end; at += PIECE)
			ask(fd, at, end - at < PIECE ? end - at : PIECE, under_way);
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

static void read_whole(const struct files_file *file, int fd, uint64_t *under_way)
{
	uint64_t size = file->size < FILES_WHOLE_MAX ? file->size : FILES_WHOLE_MAX;

	if (is_resident(fd, 0) == 1)
		return;
	ask(fd, 0, size, under_way);
	look_at_source(file);
}

static void read_files(bool is_whole)
{
	uint64_t under_way = 0;

	syscall(SYS_ioprio_set, WHO_THREAD, 0, LOWEST_BEST_EFFORT);
	for (uint32_t i = 0; i < files.head->file_count; i++) {
		const struct files_file *file = &files.files[i];
		int fd = !file->range_count == is_whole ? open_file(file) : -1;

		if (fd < 0)
			continue;
		if (is_whole)
			read_whole(file, fd, &under_way);
		else
			read_ranges(file, fd, &under_way);
		close(fd);
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

/* Files all over the list, and of each the middle range. */
static bool is_cold(void)
{
	uint32_t step = files.head->file_count / SAMPLES + 1;

	for (uint32_t i = 0; i < files.head->file_count; i += step) {
		const struct files_file *file = &files.files[i];
		uint64_t offset = 0;
		bool is_missing;
		int fd = open_file(file);

		if (fd < 0)
			continue;
		if (file->range_count)
			offset = (uint64_t)files.ranges[file->range_first + file->range_count / 2]
					 .first *
				 FILES_UNIT;
		is_missing = is_resident(fd, offset) != 1;
		close(fd);
		if (is_missing)
			return true;
	}
	return false;
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
