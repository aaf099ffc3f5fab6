/* The images that a program loads into the driver, and the kernels that it takes from them, in
 * order of first use: what is loaded ahead in its next run. One list for each section of the
 * profile (one driver build and GPU model), each a record in the extension area:
 *
 *     struct images_head | struct image_file[] | struct image[] | struct image_kernel[] | text
 *
 * in the order in which the program's latest run first asked; what that run did not ask for comes
 * last, and is dropped once it was not asked for in IMAGES_AGE_MAX runs. All texts are
 * NUL-terminated and named by their offset in `text`; offset 0 is "" and means none.
 *
 * An image is one of
 *
 *     in a file    a range of a file that the program maps: `file`, `offset`, `size`. The file is
 *                  known by its build-id, else by its size and the digest of its ELF headers; its
 *                  paths only say where to look for it. `digest` is of the range's first
 *                  `digest_size` bytes: some KiB where there is a build-id, else all of them.
 *     on the heap  `file` is IMAGES_NO_FILE, `digest` is of the whole content, which lies in the
 *                  image store (image_store.h) unless the image is one to be compiled.
 *
 * A view points into the extension area, which must lie on a multiple of 8 and stay. What
 * images_find gives has every index, offset and enumeration in range. No allocation here. */
#pragma once

#include "profile/profile.h"

#define IMAGES_RECORD 0x10u /* type of the extension record */
#define IMAGES_VERSION 2u   /* a list of another version is none */

#define IMAGES_FILES_MAX 128u
#define IMAGES_MAX 512u
#define IMAGES_KERNELS_MAX 4096u
#define IMAGES_TEXT_MAX (512u << 10) /* kernels of templates have names of hundreds of bytes */
#define IMAGES_OPTIONS_MAX 4u
#define IMAGES_JIT_OPTIONS_MAX 8u
#define IMAGES_NO_OPTION UINT32_MAX
#define IMAGES_AGE_MAX 8u
#define IMAGES_NO_FILE UINT32_MAX
#define IMAGES_NO_OFFSET UINT64_MAX
#define IMAGES_SIZE_MAX (UINT64_C(1) << 30) /* bytes of one image */
#define IMAGES_DIGEST_PART 4096u            /* bytes that are digested in a file with a build-id */
#define IMAGES_DIGEST_MAX (UINT64_C(16) << 20) /* larger ones in files without are not recorded */

/* Which entry of the driver was called with the image. */
enum image_entry {
	IMAGE_LIBRARY_DATA = 1, /* cuLibraryLoadData */
	IMAGE_LIBRARY_FILE,     /* cuLibraryLoadFromFile: the image is the whole file */
	IMAGE_MODULE_DATA,      /* cuModuleLoadData */
	IMAGE_MODULE_DATA_EX,   /* cuModuleLoadDataEx */
	IMAGE_MODULE_FATBIN,    /* cuModuleLoadFatBinary */
	IMAGE_MODULE_FILE,      /* cuModuleLoad: the image is the whole file */
	IMAGE_ENTRY_COUNT,
};

/* Base name of the entry, "cuLibraryLoadData". */
const char *image_entry_name(enum image_entry entry);

/* What was passed. */
enum image_form {
	IMAGE_FORM_NONE, /* nothing that is understood: never in a list */
	IMAGE_WRAPPED, /* a wrapper (FATBIN_WRAPPER_MAGIC, version 1) that points to a fat binary */
	IMAGE_FATBIN,  /* a fat binary itself */
	IMAGE_ELF,     /* a cubin */
	IMAGE_TEXT,    /* PTX or other text; `size` counts its NUL */
	IMAGE_FORM_COUNT,
};

#define IMAGE_IS_JIT 1u           /* the driver compiles it (PTX alone): never loaded ahead */
#define IMAGE_HAS_JIT_OPTIONS 2u  /* was passed JIT options that are not kept: likewise */
#define IMAGE_HAS_MORE_OPTIONS 4u /* was passed library options beyond those kept: likewise */
#define IMAGE_IS_LATE                                                                              \
	8u /* the program sets a limit that is settled by what is loaded: likewise                 \
	    */
#define IMAGE_HAS_NO_VALUES 16u /* its library options were passed without values */
#define IMAGE_FLAGS 31u

enum image_file_kind {
	IMAGE_FILE_BUILD_ID = 1, /* identity: the GNU build-id, zero-padded */
	IMAGE_FILE_HEADERS, /* identity: digest of the ELF header and program headers; and size */
	IMAGE_FILE_PLAIN,   /* no ELF object: identity is zeros, and size; images say the rest */
	IMAGE_FILE_KIND_COUNT,
};

struct image_file {
	uint32_t kind;            /* enum image_file_kind */
	uint32_t path;            /* texts: its absolute path when it was last seen; */
	uint32_t from_executable; /* from the folder of /proc/self/exe: "../lib/x.so"; */
	uint32_t from_started;    /* from the folder of the program as it was started: of a virtual
				   * environment's python its bin */
	uint64_t size;            /* of the file; compared where there is no build-id */
	uint8_t identity[DIGEST_SIZE];
};
static_assert(sizeof(struct image_file) == 56, "image file layout v1");

struct image_option {
	uint32_t option; /* CUlibraryOption, CUjit_option */
	uint32_t value;  /* as passed in the pointer's place; 0 where there are no values */
};

struct image {
	uint8_t digest[DIGEST_SIZE];
	uint64_t size;    /* bytes of the fat binary, cubin or text */
	uint64_t offset;  /* in the file */
	uint64_t wrapper; /* offset of the wrapper in the same file; IMAGES_NO_OFFSET: none there */
	uint32_t digest_size; /* the digest is of so many bytes from the image's start */
	uint32_t file;        /* index; IMAGES_NO_FILE: on the heap */
	uint32_t entry;       /* enum image_entry */
	uint32_t form;        /* enum image_form */
	uint32_t flags;       /* IMAGE_IS_JIT, ... */
	uint32_t load_us;     /* what the program's own load took, latest seen */
	uint32_t age;         /* runs since it was last asked for */
	uint32_t count;       /* loads of it in the latest run that asked */
	int32_t device;       /* the current context's device then, -1 = none */
	uint32_t option_count;
	struct image_option options[IMAGES_OPTIONS_MAX];
	struct image_option jit_options[IMAGES_JIT_OPTIONS_MAX];
	uint32_t jit_count;
	uint32_t refused; /* the option for which it is not kept, by the flag a JIT or a library
			   * one; IMAGES_NO_OPTION: none, or too many */
	uint32_t kernel_first, kernel_count; /* its kernels, in order of first use */
};
static_assert(sizeof(struct image) == 208, "image layout v2");

#define IMAGE_KERNEL_FUNCTION                                                                      \
	1u /* it was made a function of a context: cuKernelGetFunction,                            \
	    * cuModuleGetFunction */
#define IMAGE_KERNEL_FLAGS 1u

struct image_kernel {
	uint32_t name;  /* text */
	uint32_t image; /* index */
	uint32_t flags; /* IMAGE_KERNEL_FUNCTION */
	uint32_t age;   /* runs since it was last asked for, while its image was */
};

struct images_head {
	uint32_t version;
	uint32_t file_count, image_count, kernel_count;
	uint32_t text_size;
	uint32_t reserved;
	uint64_t key; /* images_key of the section that it belongs to */
};

/* A list to be read. */
struct images {
	const struct images_head *head;
	const struct image_file *files;
	const struct image *images;
	const struct image_kernel *kernels;
	const char *text;
};

/* Which section a list belongs to. */
uint64_t images_key(const uint8_t build_id[PROFILE_BUILD_SIZE], const char *model);

/* The list of that section: 0, or PROFILE_NONE where there is none that is sound. */
int images_find(const struct profile_extension *extension, uint64_t key, struct images *ret_images);

/* The next list, of whatever section, from *cursor (0 to begin with); false at the end. Unsound
 * ones are passed over. */
bool images_next(
	const struct profile_extension *extension, uint32_t *cursor, struct images *ret_images);

/* Is that one to be loaded ahead? Not what would be compiled, nor what the list does not know all
 * about. */
bool image_is_replayable(const struct image *image);

/* Do both have the same options, or the same reason to keep none? */
bool image_has_same_options(const struct image *a, const struct image *b);

/* Is that CUjit_option a plain number that the driver only reads, in the pointer's place? */
bool image_jit_option_is_plain(uint32_t option);

/* Why it is not loaded ahead, "jit option 4: not loaded ahead", or "". */
#define IMAGE_REASON_SIZE 64
const char *image_reason(const struct image *image, char ret_text[IMAGE_REASON_SIZE]);

/* A list to be written, with all of its room. Some 650 KiB: to be mapped, not put on a stack. */
struct images_draft {
	uint32_t file_count, image_count, kernel_count, text_size;
	struct image_file files[IMAGES_FILES_MAX];
	struct image images[IMAGES_MAX];
	struct image_kernel kernels[IMAGES_KERNELS_MAX]; /* in any order: sorted by images_write */
	char text[IMAGES_TEXT_MAX];
};

/* Makes zeroed memory a draft, also again. */
void images_draft_begin(struct images_draft *draft);

/* Keeps a text: its offset; 0 for "", and where there is no room. */
uint32_t images_draft_text(struct images_draft *draft, const char *text);

/* The list of that section becomes `draft` (its kernels are put into their order); lists of
 * sections that `profile` does not have are removed. 0, -ENOSPC (then the section has none), or
 * -EINVAL where the draft is not sound. */
int images_write(struct profile_extension *extension, const struct profile *profile, uint64_t key,
	struct images_draft *draft);
