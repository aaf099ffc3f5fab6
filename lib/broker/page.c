/* Making and reading programs' pages, on hearthd's main thread. Never maps one. */
#include "broker/page.h"

#include "base/socket.h"
#include "region/segment.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#define BATCH 16         /* made in one go: a tenth of a millisecond */
#define REST_US 10000000 /* after one could not be made */

static int make(int *ret_fd)
{
	int fd = -1, rc = segment_create("hearth-page", sizeof(struct hearth_page), &fd);

	if (rc)
		return rc;
	rc = segment_init_page_file(fd);
	if (!rc)
		rc = segment_seal(fd, false);
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int page_take(struct page_pool *pool, int *ret_fd)
{
	if (!pool->count)
		return make(ret_fd);
	*ret_fd = pool->fds[--pool->count];
	return 0;
}

bool page_pool_wants(const struct page_pool *pool, uint64_t now_us)
{
	return pool->count < PAGE_POOL_MAX && now_us >= pool->rest_until_us;
}

/* The lowest number that is free is taken: so low a number says that the rest is free. */
static bool leaves_enough(int fd, const struct rlimit *limit)
{
	return (rlim_t)fd < limit->rlim_cur / 2;
}

void page_pool_fill(struct page_pool *pool, uint64_t now_us)
{
	struct rlimit limit;

	if (!page_pool_wants(pool, now_us))
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		limit.rlim_cur = 0;
	for (int i = 0; i < BATCH && pool->count < PAGE_POOL_MAX; i++) {
		int fd;

		if (make(&fd)) {
			pool->rest_until_us = now_us + REST_US;
			return;
		}
		if (!leaves_enough(fd, &limit)) {
			close(fd);
			pool->rest_until_us = now_us + REST_US;
			return;
		}
		pool->fds[pool->count++] = fd;
	}
}

bool page_pool_drop(struct page_pool *pool, uint64_t now_us)
{
	bool had_any = pool->count > 0;

	socket_close_all(pool->fds, pool->count);
	pool->count = 0;
	pool->rest_until_us = now_us + REST_US;
	return had_any;
}

static int read_head(int fd, struct hearth_page *ret_page, size_t size)
{
	ssize_t got = pread(fd, ret_page, size, 0);

	if (got < 0)
		return -errno;
	return (size_t)got == size ? 0 : -EIO;
}

int page_read_totals(int fd, struct record_totals *ret_totals)
{
	struct hearth_page page; /* no more than its head is touched */
	int rc = read_head(fd, &page, offsetof(struct hearth_page, records));

	if (!rc)
		record_totals(&page, ret_totals);
	return rc;
}

int page_read(int fd, struct hearth_page *ret_page)
{
	return read_head(fd, ret_page, sizeof(*ret_page));
}
