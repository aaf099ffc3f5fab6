/* The pages that programs write to (hearth/region.h), on the broker's side: made ahead, since
 * hundreds of programs may wait for theirs at once, and read by copying, never mapped: what a
 * program does to its page meanwhile concerns nobody else. */
#pragma once

#include "hearth/region.h"
#include "region/record.h"

#include <stddef.h>
#include <stdint.h>

/* As many programs as may come at once and find theirs ready. Each costs the machine 4 KiB, an
 * inode and one of the broker's descriptors. */
#define PAGE_POOL_MAX 320

struct page_pool {
	int fds[PAGE_POOL_MAX];
	size_t count;
	uint64_t rest_until_us; /* makes none before: the last one could not be made */
};

/* A sealed page that nobody else has, all 0 behind its header: from the pool, or made now. The
 * descriptor is the caller's. 0 or -errno. */
int page_take(struct page_pool *pool, int *ret_fd);

/* Whether page_pool_fill has something to do. */
bool page_pool_wants(const struct page_pool *pool, uint64_t now_us);

/* Makes a few pages ahead, as long as they leave half of the process's descriptors to others. */
void page_pool_fill(struct page_pool *pool, uint64_t now_us);

/* Gives all pages back, and makes none for a while: somebody needs the descriptors. Whether there
 * were any. */
bool page_pool_drop(struct page_pool *pool, uint64_t now_us);

/* Reads the totals, or the whole page. 0 or -errno. */
int page_read_totals(int fd, struct record_totals *ret_totals);
int page_read(int fd, struct hearth_page *ret_page);
