/* The profile: what one program did in its earlier runs, so that Hearth speculates only what it has
 * seen. One small file per program, `STATE_DIR/profiles/IDENTITY`.
 *
 * The file is the struct below as it lies in memory (little-endian, fixed width), then the
 * extension area. Binary, because it is read in the user's process while the program starts: one
 * read(), a digest, a check of ranges; no parser, no allocation. `hearth profile show --json` is
 * its text form.
 *
 *     struct profile        sections, one per GPU model and driver build
 *     extension area        typed records (extension.h): libraries and kernels
 *
 * The file holds digests, base names and the paths of libraries, never a command line, an
 * environment or a program's text.
 * The digests guard against damage; against other people guard owner and mode, checked on reading.
 *
 * Functions that return int: 0, a negative errno, or one of the positive outcomes PROFILE_NONE and
 * PROFILE_CHANGED. */
#pragma once

#include "profile/identity.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_MAGIC 0x31504648u /* "HFP1" */
#define PROFILE_VERSION 1u        /* raised when layout or meaning changes: older files are none */
#define PROFILE_SECTIONS 8u
#define PROFILE_CONTEXTS 4u
#define PROFILE_LEADS 8u
#define PROFILE_BUILD_SIZE 32u /* a build-id, zero-padded: GNU ids are 8, 16 or 20 bytes */
#define PROFILE_MODEL_SIZE 64u
#define PROFILE_RANK_MAX 1024u                  /* no host has more GPUs */
#define PROFILE_FILE_MAX (1u << 20)             /* bytes of one file */
#define PROFILE_PROGRAMS_MAX 1000u              /* files in one folder */
#define PROFILE_FOLDER_MAX ((uint64_t)64 << 20) /* bytes in one folder */
#define PROFILE_PATH_MAX 4096u
#define PROFILE_SYSTEM_DIR "/usr/share/hearth/profiles" /* read-only: what an image ships */

#define PROFILE_NONE 1    /* there is no profile that counts */
#define PROFILE_CHANGED 2 /* another writer came between: nothing was written */

enum profile_context_kind {
	PROFILE_PRIMARY =
		1, /* cuDevicePrimaryCtxRetain; flags as cuDevicePrimaryCtxSetFlags said */
	PROFILE_CREATED = 2, /* cuCtxCreate_v<version>(flags) */
};

struct profile_context {
	uint32_t kind;    /* enum profile_context_kind */
	uint32_t version; /* of cuCtxCreate: 1 to 4; 0 for a primary context */
	uint32_t flags;
	int32_t device; /* ordinal that it was made on in the latest run */
};

/* What the latest run showed about how the program comes to its device. */
enum profile_rule {
	PROFILE_RULE_NONE = 0, /* not known: cuInit only */
	PROFILE_RULE_ONLY,     /* one device was visible */
	PROFILE_RULE_RANK,     /* the launcher's rank */
	PROFILE_RULE_ORDINAL,  /* always this ordinal, learned without rank variables */
	PROFILE_RULE_COUNT,
};

/* Histories are bit fields, the latest run in bit 0; `recent` says how many bits are runs. */
struct profile_section {
	uint8_t build_id[PROFILE_BUILD_SIZE]; /* of the driver */
	char model[PROFILE_MODEL_SIZE];       /* of the first visible GPU, NUL-padded */
	uint64_t learned_s;                   /* CLOCK_REALTIME of the latest run's end */
	uint32_t runs;
	uint32_t recent; /* 0 to 32 */
	/* What the runs did. "After start" is between process start and the first lookup of cuInit,
	 * "after lookup" between that and the program's first call of cuInit. */
	uint32_t used;    /* cuInit was called */
	uint32_t context; /* a context was made */
	uint32_t env_after_start;
	uint32_t env_after_lookup;
	uint32_t forked_after_start;
	uint32_t forked_after_lookup;
	uint32_t several; /* another instance ran at the same time */
	/* Process start, and first lookup of cuInit, to the call of cuInit; newest first; 0 = not
	 * seen */
	uint32_t start_lead_us[PROFILE_LEADS];
	uint32_t lookup_lead_us[PROFILE_LEADS];
	uint32_t init_us;    /* what cuInit takes, smoothed; 0 = not known */
	uint32_t context_us; /* what the context takes, smoothed; 0 = not known */
	/* Its device. */
	uint32_t rule;      /* enum profile_rule */
	int32_t ordinal;    /* for PROFILE_RULE_ORDINAL, else -1 */
	uint32_t probation; /* clean runs until a context is made ahead again */
	uint32_t context_count;
	struct profile_context contexts[PROFILE_CONTEXTS]; /* in order of first use */
	/* How the guesses went. */
	uint32_t tries;      /* history: 1 is a hit; cleared when a pause ends */
	uint32_t tried;      /* how many bits of it are tries, 0 to 8 */
	uint32_t pause;      /* runs to go before the next try */
	uint32_t pauses;     /* how long the latest pause was, in runs; 0 = none yet */
	uint32_t hits;       /* totals */
	uint32_t squashes;   /* a wrong guess was undone */
	uint32_t unused;     /* nobody asked: given back */
	uint32_t wrong_rank; /* that began the probation, plus 1; 0 = it had none */
	uint32_t reserved[47];
};
static_assert(sizeof(struct profile_section) == 512, "section layout v1");

struct profile {
	uint32_t magic;
	uint32_t version;
	uint32_t file_size;
	uint32_t extension_size;
	uint8_t head_digest[DIGEST_SIZE]; /* of all that follows in this struct */
	uint8_t extension_digest[DIGEST_SIZE];
	uint8_t program[DIGEST_SIZE];  /* identity: the file's name is its first half in hexadecimal
					*/
	char name[IDENTITY_NAME_SIZE]; /* base name for people, NUL-padded, printable */
	uint32_t kind;                 /* enum identity_kind */
	uint32_t section_count;
	uint64_t reserved[9];
	struct profile_section sections[PROFILE_SECTIONS];
};
static_assert(offsetof(struct profile, sections) == 256, "head layout v1");
static_assert(sizeof(struct profile) == 256 + 8 * 512, "profile layout v1");

/* The extension area in memory that the caller provides (bounded: no allocation here). */
struct profile_extension {
	uint8_t *data;
	uint32_t size;
	uint32_t room;
};
#define PROFILE_EXTENSION_MAX (PROFILE_FILE_MAX - (uint32_t)sizeof(struct profile))

/* An empty profile of this program. */
void profile_init(struct profile *profile, const struct identity *identity);

/* Is this a whole, undamaged profile of this version whose every field is in range? Reads nothing
 * outside the struct. The extension is checked by profile_extension_is_sound. */
bool profile_is_sound(const struct profile *profile);
bool profile_extension_is_sound(
	const struct profile *profile, const struct profile_extension *extension);

/* The section for this driver and GPU model. With model NULL (not known yet) the driver's only
 * section; several of them are none. NULL where there is none. */
const struct profile_section *profile_section(const struct profile *profile,
	const uint8_t build_id[PROFILE_BUILD_SIZE], const char *model);

/* The same for writing: makes the section, out of the longest unused one where all are taken. */
/* `model` may not be NULL. */
struct profile_section *profile_section_make(
	struct profile *profile, const uint8_t build_id[PROFILE_BUILD_SIZE], const char *model);

/* "FOLDER/0123456789abcdef0123456789abcdef", or -ENAMETOOLONG. */
int profile_path(
	const char *folder, const uint8_t program[DIGEST_SIZE], char ret_path[PROFILE_PATH_MAX]);

/* Reads the profile of `program` in a folder with open, fstat, read and close alone. Damaged,
 * truncated, foreign-owned, writable by group or others, a symlink, another version, another
 * program's: PROFILE_NONE. `extension` may be NULL: its area is then not read. Foreign is an owner
 * who is neither this user nor root. What ret_profile holds is meaningful after 0 alone. */
int profile_read(const char *folder, const uint8_t program[DIGEST_SIZE],
	struct profile *ret_profile, struct profile_extension *extension);

/* The user's own, else the one that an image ships (system_folder may be NULL). */
int profile_find(const char *folder, const char *system_folder, const uint8_t program[DIGEST_SIZE],
	struct profile *ret_profile, struct profile_extension *extension);

/* The same as profile_read for a file by its path, whichever program's it is: for tools. */
int profile_read_file(
	const char *path, struct profile *ret_profile, struct profile_extension *extension);

/* May what is in that file be believed? Only this user or root can have written it. */
struct stat;
bool profile_is_trusted(const struct stat *file);

/* Reads a profile of `size` bytes, which begins where `fd` is. 0, PROFILE_NONE, -ENOSPC. */
int profile_read_part(
	int fd, uint64_t size, struct profile *ret_profile, struct profile_extension *extension);

/* Writes STATE_DIR/profiles/..., making folders 0700 as needed: a temporary file in the same
 * folder, then rename. No lock is taken, so it is right on NFS too: readers see one whole file or
 * the other, and of two writers at once the last one wins. Fills in sizes and digests. `extension`
 * may be NULL: none. Then removes the longest unused files beyond the folder's bounds. */
int profile_write(
	const char *folder, struct profile *profile, const struct profile_extension *extension);

/* The same, if the file is still what profile_seen saw; else PROFILE_CHANGED. `seen` may be NULL.
 */
int profile_replace(const char *folder, struct profile *profile,
	const struct profile_extension *extension, const uint8_t *seen);

/* What tells a program's file from any other state of it: its digest, as it lies there; zeros where
 * there is no file. 0 or -ENAMETOOLONG. */
int profile_seen(
	const char *folder, const uint8_t program[DIGEST_SIZE], uint8_t ret_seen[DIGEST_SIZE]);

/* Removes the longest unused profiles until at most these are left; returns how many went. Also
 * removes what writers that were killed left behind, once it is an hour old. */
int profile_prune(const char *folder, uint32_t programs_max, uint64_t bytes_max);

/* The same with a folder's bounds. Looks at each file only where there are enough to exceed one: on
 * a shared home that is dear. */
int profile_tidy(const char *folder);
