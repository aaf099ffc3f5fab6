/* A profile together with the images on the heap that it lists, in one file: for another machine,
 * or to be shipped in an image. In tools only.
 *
 *     struct bundle_head | the profile's file | struct bundle_image, content | ...
 *
 * Little-endian, fixed width. The profile and each image bear their digests. */
#pragma once

#include "profile/profile.h"

#include <stdio.h>

#define BUNDLE_MAGIC "HFBUNDL1"

struct bundle_head {
	char magic[8];
	uint64_t profile_size;
	uint64_t image_count;
};

struct bundle_image {
	uint8_t digest[DIGEST_SIZE];
	uint64_t size;
};

#define BUNDLE_NONE 1 /* the file is something else */

/* Writes the profile, and what of its images the store has. 0, or a negative errno. */
int bundle_write(FILE *to, const struct profile *profile, const struct profile_extension *extension,
	const char *store);

/* Reads the profile out of a bundle, and puts its images into the store. 0; BUNDLE_NONE; -ESTALE
 * where it is damaged, or not to be trusted (as profile_read_file says); or another negative errno.
 */
int bundle_read(const char *path, const char *store, struct profile *ret_profile,
	struct profile_extension *extension);
