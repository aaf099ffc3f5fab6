/* A program's call that loads an image: what is passed, where it lies, whether it is one that the
 * profile lists. Runs in the user's program, inside the call; no lock, no allocation; reads no more
 * of the program's memory than the driver itself does. */
#pragma once

#include "driver/mapped.h"
#include "preload/image_source.h"
#include "profile/images.h"

struct image_call {
	/* Filled in by the handler. */
	enum image_entry entry;
	const void *code; /* the image, or NULL for the two entries that take a path */
	const char *path; /* of those */
	uint32_t jit_count;
	uint32_t option_count;
	const int *options;        /* CUlibraryOption */
	const void *const *values; /* each is the option's value, or points to it, as CUDA says */
	/* By image_call_look. */
	enum image_form form;
	const void *data; /* the fat binary, cubin or text; NULL where nothing is understood */
	uint64_t size;    /* 0 for text (its end is not looked for) and where it cannot be told */
	bool is_in_file;  /* `data` is mapped from a file by the loader: */
	uint64_t offset;  /* of it, */
	uint64_t wrapper; /* and of the wrapper in the same file, else IMAGES_NO_OFFSET */
	struct mapped mapped;
};

/* Looks at what is passed. */
void image_call_look(struct image_call *call);

/* Does the call ask for image `index` of the list: the same entry, form, options and content? Of an
 * image in a file, the file's identity and the offsets decide, and its digest; of one on the heap
 * its bytes, which are compared with `source` (as image_source_open gave it for this image). */
bool image_call_is(const struct image_call *call, const struct images *list, uint32_t index,
	const struct image_source *source);
