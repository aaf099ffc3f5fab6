/* The store of images that programs make on the heap: STATE_DIR/images/DIGEST, the content and
 * nothing else, so that a later run has it before the program has made it. Content-addressed,
 * bounded, the longest unused out first. A file counts only if it is this user's or root's, nobody
 * else may write it, and its content has the digest that names it. */
#pragma once

#include "profile/profile.h"

#define IMAGE_STORE_MAX ((uint64_t)256 << 20) /* bytes in one folder */
#define IMAGE_STORE_FILES_MAX 10000u
#define IMAGE_STORE_SYSTEM_DIR "/usr/share/hearth/images" /* read-only: what an image ships */

/* The store that belongs to a folder of profiles: "images" beside it. 0 or -ENAMETOOLONG. */
int image_store_folder(const char *profiles, char ret_folder[PROFILE_PATH_MAX]);

/* Keeps the content under its digest: a temporary file, then rename; what is there already is only
 * marked as used. Makes the folder as needed, and prunes it after something was added. No lock, no
 * allocation. 0, -EFBIG for more than the store holds, or another negative errno. */
int image_store_put(
	const char *folder, const uint8_t digest[DIGEST_SIZE], const void *content, uint64_t size);

/* Maps a content, read-only and private; the caller unmaps `size` bytes. 0; -ENOENT; -ESTALE where
 * the file is not what its name says, or not to be trusted; or another negative errno. */
int image_store_map(const char *folder, const uint8_t digest[DIGEST_SIZE], uint64_t size,
	const void **ret_content);

/* Marks a content as used just now, if that was not so today already. */
void image_store_mark(const char *folder, const uint8_t digest[DIGEST_SIZE]);

/* Removes the longest unused until at most so many bytes are left, and what killed writers left
 * behind an hour ago; returns how many files went. */
int image_store_prune(const char *folder, uint64_t bytes_max);
