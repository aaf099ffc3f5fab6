/* Pages made ahead: as many as are allowed, never at the expense of others, each one fresh. */
#include "broker/page.h"

#include "region/segment.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#define REST_US UINT64_C(10000000)

static struct page_pool pool;

static void fill(uint64_t now_us)
{
	while (page_pool_wants(&pool, now_us))
		page_pool_fill(&pool, now_us);
}

static void limit_descriptors(rlim_t count)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = count;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

Test(page, a_page_is_one_that_programs_take)
{
	/* From an empty pool, and made ahead. */
	for (int i = 0; i < 2; i++) {
		struct record_totals totals;
		struct hearth_page *page, copy;
		int fd;

		cr_assert_eq(page_take(&pool, &fd), 0);
		cr_assert_eq(segment_map_page(fd, &page), 0);
		cr_assert_eq(page_read_totals(fd, &totals), 0);
		cr_assert_eq(totals.record_count, 0);
		page->record_count = 5;
		page->records[1].rc = 7;
		cr_assert_eq(page_read_totals(fd, &totals), 0);
		cr_assert_eq(totals.record_count, 5);
		cr_assert_eq(page_read(fd, &copy), 0);
		cr_assert_eq(copy.records[1].rc, 7);
		page_pool_fill(&pool, 1);
		cr_assert_gt(pool.count, 0);
	}
	cr_assert_eq(page_read(-1, &(struct hearth_page){0}), -EBADF);
}

Test(page, the_pool_is_filled_and_no_more)
{
	limit_descriptors(1024);
	fill(1);
	cr_assert_eq(pool.count, PAGE_POOL_MAX);
	for (size_t i = 1; i < pool.count; i++)
		cr_assert_neq(pool.fds[i], pool.fds[i - 1]);
}

Test(page, half_of_the_descriptors_are_left_to_others)
{
	int fd;

	limit_descriptors(64);
	fill(1);
	cr_assert_gt(pool.count, 0);
	cr_assert_leq(pool.count, 32);
	fd = dup(0);
	cr_assert_leq(fd, 32);
	/* It rests after that, and then tries again. */
	cr_assert(!page_pool_wants(&pool, REST_US));
	cr_assert(page_pool_wants(&pool, REST_US + 1));
}

Test(page, a_pool_that_is_dropped_leaves_nothing_and_rests)
{
	int before = dup(0);

	close(before);
	fill(1);
	cr_assert(page_pool_drop(&pool, 2));
	cr_assert_eq(pool.count, 0);
	cr_assert_eq(dup(0), before);
	cr_assert(!page_pool_wants(&pool, 2));
	cr_assert(!page_pool_drop(&pool, 2));
}
