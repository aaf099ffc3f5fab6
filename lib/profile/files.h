/* The files that a program reads while it starts, and which parts of them it touches: what is read
 * ahead in its next run, where it is not in memory. One record in the profile's extension area:
 *
 *     struct files_head | struct files_file[] | struct files_range[] | text
 *
 * Mapped objects come first, those mapped earliest in front, then files that are read as a whole
 * (Python's compiled modules). Texts are NUL-terminated and named by their offset; offset 0 is "".
 * A file that has changed since costs a wrong read and nothing else, so its size is all that is
 * compared. No allocation here; views need an area that lies on a multiple of 8. */
#pragma once

#include "profile/profile.h"

#include <limits.h>

#define FILES_RECORD 0x20u /* type of the extension record */
#define FILES_VERSION 1u   /* a list of another version is none */

#define FILES_MAX 4096u
#define FILES_RANGES_MAX 4096u
#define FILES_TEXT_MAX (192u << 10)
#define FILES_UNIT (128u << 10)             /* bytes: ranges are counted in these */
#define FILES_UNITS_MAX 8192u               /* in all ranges: 1 GiB */
#define FILES_WHOLE_MAX (UINT64_C(1) << 20) /* bytes of a file that is read as a whole */

struct files_file {
	uint32_t folder; /* texts: absolute, without the last slash; */
	uint32_t name;   /* base name */
	uint64_t size;
	uint32_t range_first;
	uint32_t range_count; /* 0: the whole file */
};
static_assert(sizeof(struct files_file) == 24, "files file layout v1");

struct files_range {
	uint32_t first, count; /* in FILES_UNIT */
};

struct files_head {
	uint32_t version;
	uint32_t file_count, range_count;
	uint32_t text_size;
};

/* A list to be read; every index and offset in it is in range. */
struct files {
	const struct files_head *head;
	const struct files_file *files;
	const struct files_range *ranges;
	const char *text;
};

/* The program's list: 0, or PROFILE_NONE where there is none that is sound. */
int files_find(const struct profile_extension *extension, struct files *ret_files);

/* "FOLDER/NAME"; false where that is too long. */
bool files_path(const struct files *files, const struct files_file *file, char ret_path[PATH_MAX]);

/* A list to be written, with all of its room: some 320 KiB, to be mapped. Begins as zeros. */
struct files_draft {
	uint32_t file_count, range_count, text_size, unit_count;
	struct files_file files[FILES_MAX];
	struct files_range ranges[FILES_RANGES_MAX];
	char text[FILES_TEXT_MAX];
};

/* Adds a file by its absolute path. False where there is no room, or the path is none that may be
 * stored. */
bool files_draft_add(struct files_draft *draft, const char *path, uint64_t size);

/* Adds a range of the latest file. False where there is no room. */
bool files_draft_range(struct files_draft *draft, uint32_t first, uint32_t count);

/* The latest file goes again, with its ranges. */
void files_draft_drop(struct files_draft *draft);

/* Turns the order of the files from `first` on around. */
void files_draft_reverse(struct files_draft *draft, uint32_t first);

/* The program's list becomes `draft`: 0, -ENOSPC (then it has none). */
int files_write(struct profile_extension *extension, const struct files_draft *draft);

/* Is a list to be made in this run? Where there is none, and in the 1st, 2nd, 4th, 8th run and so
 * on. */
bool files_are_due(const struct profile *profile, const struct profile_extension *extension);

/* Reads the profile as it is now and replaces its list; where another writer comes between, again.
 * A program without a profile gets none: PROFILE_NONE. Else 0 or a negative errno. */
int files_learn(const char *folder, const char *system_folder, const struct identity *identity,
	const struct files_draft *draft);
