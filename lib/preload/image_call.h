/* A program's call that loads an image: what is passed, where it lies, whether it is one that the
 * profile lists. Runs in the user's program, inside the call; no lock, no allocation; reads no more
 * of the program's memory than the driver itself does. */
#pragma once

#include "driver/mapped.h"
#include "preload/image_source.h"
#include "profile/images.h"

struct image_call {
	/* By image_call_begin. */
	enum image_entry entry;
	const void *code; /* the image, or NULL for the two entries that take a path */
	const char *path; /* of those */
	uint32_t jit_count;
	const int *jit_options; /* CUjit_option, with their values likewise */
	const void *const *jit_values;
	uint32_t option_count;
	const int *options;        /* CUlibraryOption */
	const void *const *values; /* each is the option's value, or points to it, as CUDA says */
	/* By who gave the program a listed image for it: that image's digest. */
	bool is_known;
	uint8_t known[DIGEST_SIZE];
	/* By image_call_look. */
	bool is_looked_at;
	enum image_form form; /* of the entries that take a path: IMAGE_FORM_NONE */
	const void *data;     /* the fat binary, cubin or text; NULL where nothing is understood */
	uint64_t size;        /* of a fat binary; of others image_call_measure tells it */
	bool is_in_file;      /* `data` is mapped from a file by the loader: */
	uint64_t offset;      /* of it, */
	uint64_t wrapper;     /* and of the wrapper in the same file, else IMAGES_NO_OFFSET */
	struct mapped mapped;
	/* By image_call_measure. */
	bool is_compiled;
	bool has_text; /* something that could be compiled, PTX or other text */
};

/* Notes the arguments; the rest is filled in by the calls below. The path must stay. */
void image_call_begin(struct image_call *ret_call, enum image_entry entry, const void *code,
	const char *path, uint32_t jit_count, const void *jit_options, const void *jit_values,
	const void *options, const void *values, uint32_t option_count);

/* Looks at what is passed; once. */
void image_call_look(struct image_call *call);

/* Completes it once the driver has taken the image with success: `size`, a text's with its NUL, 0
 * where it cannot be told; `is_compiled`, on a device of that compute capability. */
void image_call_measure(struct image_call *call, unsigned int sm);

/* The options as the profile keeps them; `flags` says what it cannot, `refused` for which one. */
void image_call_options(const struct image_call *call, struct image *ret_image);

/* It has an option that is not kept: none of them is. */
void image_refuse(struct image *image, uint32_t flag, uint32_t option);

/* Does the call ask for image `index` of the list: the same entry, form, options and content? Of an
 * image in a file, the file's identity and the offsets decide, and its digest; of one on the heap
 * its bytes, which are compared with `source` (as image_source_open gave it for this image). */
bool image_call_is(const struct image_call *call, const struct images *list, uint32_t index,
	const struct image_source *source);
