/* The two kinds of shared memory (hearth/region.h) as sealed memfds. The broker makes them; either
 * side maps them. Descriptors and mappings are the caller's. */
#pragma once

#include "hearth/region.h"

#include <stdbool.h>
#include <stddef.h>

/* Makes a memfd of `size` bytes, all 0. Its memory is taken, and charged, where it is first
 * touched: a memfd lies on no file system that could be full, so that touching it raises no SIGBUS.
 * Sealed against shrinking and growing only by segment_seal. 0 or -errno. */
int segment_create(const char *name, size_t size, int *ret_fd);

/* Seals it against shrinking, growing and further seals; `is_read_only` also against every future
 * write but those through mappings that exist already (kernels before 5.1 cannot: then the
 * descriptor that segment_read_only makes is the only bar). */
int segment_seal(int fd, bool is_read_only);

/* Seals a file whose bytes are final: nobody can change anything about it any more. */
int segment_seal_whole(int fd);

/* A sealed memfd that holds these bytes, open for reading only. */
int segment_from_bytes(const char *name, const void *bytes, size_t size, int *ret_fd);

/* Another descriptor of the same memfd, open for reading only. */
int segment_read_only(int fd, int *ret_fd);

int segment_map(int fd, size_t size, bool is_writable, void **ret_memory);
void *segment_unmap(const void *memory, size_t size);

/* 0 where `fd` is a memfd of exactly `size` bytes that can neither shrink nor grow; -EPROTO where
 * it is anything else. */
int segment_check(int fd, size_t size);

/* The same, and nobody can change a byte of it. */
int segment_check_whole(int fd, size_t size);

/* Check, map and look at the header: 0, or -EPROTO, or -errno of mmap. */
int segment_map_region(int fd, const struct hearth_region **ret_region);
int segment_map_page(int fd, struct hearth_page **ret_page);

/* Writes the header of a page that nobody else sees yet; the rest must be 0. */
void segment_init_page(struct hearth_page *page);

/* The same through the page's descriptor. 0 or -errno. */
int segment_init_page_file(int fd);
