/* Which files this program has touched (touched.h). Of mapped objects /proc/self/pagemap says which
 * pages are there; Python's compiled modules are read, not mapped, so those count that have been
 * read since they were written and are in memory. Runs on a thread of our own or at the program's
 * end; must not allocate, and must end in time. */
#include "preload/touched.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "preload/observe.h"
#include "preload/read_ahead.h"
#include "preload/situation.h"
#include "preload/spare.h"
#include "preload/speculation.h"
#include "preload/threads.h"
#include "preload/touched_modules.h"
#include "profile/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIMIT_US 300000 /* looking ends then, with what was found so far */
#define EXIT_LIMIT_US 1000000

#define PAGE 4096u
#define PAGES_PER_UNIT (FILES_UNIT / PAGE)
#define PAGES_AT_ONCE 4096u
#define PAGE_IS_THERE (UINT64_C(3) << 62) /* in memory or swapped out (kernel: pagemap.rst) */
#define UNITS_MAX 32768u                  /* of one file: 4 GiB */
#define GAP_UNITS 2u                      /* between ranges that become one */

/* Scratch memory, mapped. */
struct work {
	struct files_draft draft;
	_Alignas(8) uint8_t extension[PROFILE_EXTENSION_MAX];
	uint64_t pages[PAGES_AT_ONCE];
	uint8_t units[UNITS_MAX]; /* of the object at hand: touched? */
	uint32_t unit_end;
	char path[PATH_MAX]; /* the object at hand; "" = none */
	bool is_object;      /* part of it is mapped to be executed */
	int pagemap;
	char text[65536]; /* of /proc/self/maps */
};

/* A line of /proc/self/maps. */
struct mapping {
	uint64_t start, end, offset;
	bool is_executable;
	const char *path;
};

static void add_ranges(struct work *work)
{
	struct files_draft *draft = &work->draft;
	uint32_t first, last;

	for (uint32_t unit = 0; unit < work->unit_end; unit = last + 1) {
		first = last = unit;
		if (!work->units[unit])
			continue;
		for (uint32_t next = unit + 1; next < work->unit_end && next <= last + GAP_UNITS;
			next++)
			if (work->units[next])
				last = next;
		if (!files_draft_range(draft, first, last - first + 1))
			return;
	}
}

/* The object at hand is over. */
static void end_object(struct work *work)
{
	struct stat status;

	if (work->path[0] && work->is_object && !status_of_path(work->path, &status) &&
		S_ISREG(status.st_mode) &&
		files_draft_add(&work->draft, work->path, (uint64_t)status.st_size)) {
		add_ranges(work);
		/* One without ranges would be read as a whole. */
		if (!work->draft.files[work->draft.file_count - 1].range_count)
			files_draft_drop(&work->draft);
	}
	memset(work->units, 0, work->unit_end);
	work->unit_end = 0;
	work->is_object = false;
	work->path[0] = '\0';
}

static void note_pages(struct work *work, const struct mapping *mapping)
{
	uint64_t count = (mapping->end - mapping->start) / PAGE, got;

	for (uint64_t at = 0; at < count; at += got) {
		uint64_t wanted = count - at < PAGES_AT_ONCE ? count - at : PAGES_AT_ONCE;
		ssize_t size = pread(work->pagemap, work->pages, wanted * sizeof(uint64_t),
			(off_t)((mapping->start / PAGE + at) * sizeof(uint64_t)));

		if (size <= 0)
			return;
		got = (uint64_t)size / sizeof(uint64_t);
		for (uint64_t i = 0; i < got; i++) {
			uint64_t unit = (mapping->offset / PAGE + at + i) / PAGES_PER_UNIT;

			if (!(work->pages[i] & PAGE_IS_THERE) || unit >= UNITS_MAX)
				continue;
			work->units[unit] = 1;
			if (unit >= work->unit_end)
				work->unit_end = (uint32_t)unit + 1;
		}
	}
}

static void note_mapping(struct work *work, const struct mapping *mapping)
{
	if (strcmp(work->path, mapping->path)) {
		end_object(work);
		if (strlen(mapping->path) >= sizeof(work->path))
			return;
		memcpy(work->path, mapping->path, strlen(mapping->path) + 1);
	}
	work->is_object |= mapping->is_executable;
	note_pages(work, mapping);
}

/* "START-END PERMS OFFSET DEVICE INODE     PATH" (man 5 proc). False for what is no file. */
static bool parse(char *line, struct mapping *ret_mapping)
{
	char *path = strchr(line, '/');
	const char *at = line;

	if (!path || !strncmp(path, "/dev/", 5) || !strncmp(path, "/memfd:", 7) ||
		strstr(path, " (deleted)"))
		return false;
	ret_mapping->start = number_hex(&at);
	if (*at++ != '-')
		return false;
	ret_mapping->end = number_hex(&at);
	if (*at++ != ' ' || strnlen(at, 5) < 5)
		return false;
	ret_mapping->is_executable = at[2] == 'x';
	at += 5;
	ret_mapping->offset = number_hex(&at);
	ret_mapping->path = path;
	return *at == ' ' && ret_mapping->end > ret_mapping->start;
}

/* Objects in the order of their addresses: those mapped last come first. */
static void note_objects(struct work *work, uint64_t end_us)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t kept = 0;
	ssize_t got;

	while (maps >= 0 && clock_monotonic_us() < end_us &&
		(got = read(maps, work->text + kept, sizeof(work->text) - 1 - kept)) > 0) {
		char *line = work->text, *end;

		work->text[kept + (size_t)got] = '\0';
		while ((end = strchr(line, '\n'))) {
			struct mapping mapping;

			*end = '\0';
			if (parse(line, &mapping))
				note_mapping(work, &mapping);
			line = end + 1;
		}
		kept = strlen(line);
		if (kept >= sizeof(work->text) - 1)
			break;
		memmove(work->text, line, kept);
	}
	end_object(work);
	if (maps >= 0)
		close(maps);
}

static bool is_due(struct work *work)
{
	struct profile_extension extension = {
		.data = work->extension, .room = PROFILE_EXTENSION_MAX};
	struct profile profile;

	if (read_ahead_is_stale())
		return true;
	return !profile_find(situation_profiles(), PROFILE_SYSTEM_DIR, situation_identity()->digest,
		       &profile, &extension) &&
	       files_are_due(&profile, &extension);
}

static void learn(struct work *work)
{
	uint64_t start_us = clock_monotonic_us();
	uint32_t objects;
	int rc;

	work->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (work->pagemap < 0)
		return;
	note_objects(work, start_us + LIMIT_US);
	close(work->pagemap);
	files_draft_reverse(&work->draft, 0);
	objects = work->draft.file_count;
	touched_modules(&work->draft, objects, start_us + LIMIT_US);
	rc = files_learn(
		situation_profiles(), PROFILE_SYSTEM_DIR, situation_identity(), &work->draft);
	if (!rc)
		situation_note_files();
	log_debug("files: %u objects with %u KiB touched, %u modules: %d after %llu us", objects,
		work->draft.unit_count * (FILES_UNIT >> 10), work->draft.file_count - objects, rc,
		(unsigned long long)(clock_monotonic_us() - start_us));
}

enum { LEARNED_NOT, LEARNED_BUSY, LEARNED_DONE };
static uint32_t state, has_ended;

void touched_learn(void)
{
	struct work *work;

	if (!observe_is_on() || !observe_has_context() || !situation_identity() ||
		!situation_profiles() || !speculation_change(&state, LEARNED_NOT, LEARNED_BUSY))
		return;
	work = mmap(NULL, sizeof(*work), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (work != MAP_FAILED) {
		if (is_due(work))
			learn(work);
		munmap(work, sizeof(*work));
	}
	speculation_write(&state, LEARNED_DONE);
}

static void *run(void *unused)
{
	touched_learn();
	speculation_write(&has_ended, 1);
	return NULL;
}

/* The thread that ends the program may have a small stack. */
void touched_end(void)
{
	if (!observe_is_on() || !observe_has_context() || !spare_is_learning())
		return;
	if (speculation_read(&state) == LEARNED_NOT && !threads_start(run, NULL))
		speculation_wait(&has_ended, 0, EXIT_LIMIT_US);
	speculation_wait(&state, LEARNED_BUSY, EXIT_LIMIT_US);
}
