/* What tells a file with images from any other. */
#pragma once

#include "profile/images.h"

/* The identity of an open file, by pread: kind, size and identity are filled in, the texts are 0.
 * 0 or a negative errno. */
int image_file_identify(int fd, struct image_file *ret_file);

/* A part of the file in memory of our own, which a file that is cut short meanwhile does not take
 * away: a mapping of it would end the program. The caller unmaps `size` bytes; NULL where the file
 * has not so many, or there is no memory. */
void *image_file_copy(int fd, uint64_t offset, uint64_t size);

/* Fills in what the content of a whole file, `image->size` bytes, is: the form, and whether the
 * driver compiles it for that compute capability. */
void image_file_look(const void *content, unsigned int sm, struct image *image);

/* The path as seen from a folder: "../lib/x.so". False where they have nothing in common but the
 * root folder, and where a path is not absolute or too long. */
bool image_file_relative(const char *folder, const char *path, char *ret_path, size_t size);
