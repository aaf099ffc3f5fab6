/* Where the content of a recorded image comes from before the program has mapped it: its file,
 * found by the recorded paths and then known by its identity and digest; or the image store. Used
 * on the speculative thread. No lock, no loader, no allocation but mappings; no descriptor stays.
 */
#pragma once

#include "profile/images.h"

#include <limits.h>

/* The folders that recorded paths may be relative to: "" where one is not known. */
struct image_bases {
	char executable[PATH_MAX]; /* of /proc/self/exe */
	char started[PATH_MAX];    /* of the program as it was started: argv[0], else AT_EXECFN */
};

/* On one of the program's threads, or the speculative one; the working folder counts where the
 * program was started by a relative path. */
void image_bases_find(const char *started, struct image_bases *ret_bases);

/* A mapping of an image's content, read-only; of a text its NUL follows. */
struct image_source {
	const void *data; /* `size` bytes: what the recorded image was */
	uint64_t size;
	void *mapping; /* for image_source_close */
	uint64_t mapping_size;
};

/* Opens image `index` of the list. 0 where its content is what was recorded, digest and all;
 * -ENOENT where no file of that identity is where the paths say, or the store has not got it;
 * -ESTALE where the file is the one but the content is not; or another negative errno. `store` is
 * the image store's folder. */
int image_source_open(const struct images *list, uint32_t index, const struct image_bases *bases,
	const char *store, struct image_source *ret_source);

void image_source_close(struct image_source *source);
