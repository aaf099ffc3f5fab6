/* Records: what one writes another reads, and what a hostile program writes does no harm. */
#include "region/record.h"
#include "region/segment.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct hearth_page page;

static void clear(void)
{
	memset(&page, 0, sizeof(page));
	segment_init_page(&page);
}

TestSuite(record, .init = clear);

static struct hearth_record example(void)
{
	struct hearth_record record = {.device = 0,
		.rc = 0,
		.how = HEARTH_WARM,
		.at_us = 5,
		.visible_us = 10,
		.hidden_us = 90};

	record_name(&record, "cuInit", NULL);
	return record;
}

Test(record, what_is_written_can_be_read)
{
	struct hearth_record record = example(), copy;
	struct record_totals totals;

	record.size = 1234;
	record_name(&record, "cuLibraryLoadData", "libtorch_cuda.so");
	cr_assert_eq(record_write(&page, &record), 0);
	cr_assert_eq(record_copy(&page, 0, &copy), 0);
	cr_assert_str_eq(copy.call, "cuLibraryLoadData");
	cr_assert_str_eq(copy.object, "libtorch_cuda.so");
	cr_assert_eq(copy.size, 1234);
	cr_assert_eq(record_copy(&page, 1, &copy), RECORD_NONE);
	record_totals(&page, &totals);
	cr_assert_eq(totals.record_count, 1);
	cr_assert_eq(totals.visible_us, 10);
	cr_assert_eq(totals.hidden_us, 90);
}

Test(record, a_full_page_counts_on)
{
	struct hearth_record record = example(), copy;
	struct record_totals totals;

	for (uint32_t i = 0; i < HEARTH_MAX_RECORDS; i++)
		cr_assert_eq(record_write(&page, &record), 0);
	cr_assert_eq(record_write(&page, &record), RECORD_LOST);
	cr_assert_eq(record_copy(&page, HEARTH_MAX_RECORDS - 1, &copy), 0);
	cr_assert_eq(record_copy(&page, HEARTH_MAX_RECORDS, &copy), RECORD_NONE);
	record_totals(&page, &totals);
	cr_assert_eq(totals.record_count, HEARTH_MAX_RECORDS);
	cr_assert_eq(totals.records_lost, 1);
	cr_assert_eq(totals.visible_us, 10 * (HEARTH_MAX_RECORDS + 1));
}

Test(record, names_are_cut_and_stay_terminated)
{
	struct hearth_record record = example();
	char longer[200];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	record_name(&record, longer, longer);
	cr_assert_eq(strlen(record.call), sizeof(record.call) - 1);
	cr_assert_eq(strlen(record.object), sizeof(record.object) - 1);
	cr_assert_eq(record_check(&record), 0);
}

Test(record, every_field_is_checked)
{
	struct hearth_record good = example(), bad;

	cr_assert_eq(record_check(&good), 0);
	bad = good, bad.device = -2;
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.device = HEARTH_MAX_DEVICES;
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.how = 0;
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.how = HEARTH_JIT + 1;
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.how = UINT32_MAX;
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.rc = -1;
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.reserved = 1;
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, memset(bad.call, 'a', sizeof(bad.call));
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.call[0] = 0;
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.call[1] = '\n';
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, bad.call[sizeof(bad.call) - 1] = 'x';
	cr_assert_eq(record_check(&bad), -EBADMSG);
	bad = good, memset(bad.object, 'a', sizeof(bad.object));
	cr_assert_eq(record_check(&bad), -EBADMSG);
}

Test(record, a_page_of_random_bytes_is_read_without_harm)
{
	srand(1);
	for (int round = 0; round < 200; round++) {
		struct record_totals totals;
		struct hearth_record copy;

		for (size_t i = 0; i < sizeof(page); i++)
			((unsigned char *)&page)[i] = (unsigned char)rand();
		record_totals(&page, &totals);
		cr_assert_leq(totals.record_count, HEARTH_MAX_RECORDS);
		cr_assert_leq(totals.device_count, HEARTH_MAX_DEVICES);
		for (uint32_t i = 0; i <= HEARTH_MAX_RECORDS; i++)
			cr_assert_neq(record_copy(&page, i, &copy), 0);
		/* Nor does writing into it go anywhere else. */
		copy = example();
		record_write(&page, &copy);
	}
}

Test(record, a_count_that_somebody_sets_high_is_not_followed)
{
	struct hearth_record record = example();

	page.record_count = UINT32_MAX;
	cr_assert_eq(record_write(&page, &record), RECORD_LOST);
	cr_assert_eq(page.record_count, UINT32_MAX);
}

static void *write_some(void *data)
{
	struct hearth_record record = example();

	for (int i = 0; i < 50; i++)
		record_write(&page, &record);
	return NULL;
}

Test(record, threads_do_not_share_a_place)
{
	pthread_t threads[6];
	struct record_totals totals;
	struct hearth_record copy;

	for (int i = 0; i < 6; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, write_some, NULL), 0);
	for (int i = 0; i < 6; i++)
		pthread_join(threads[i], NULL);
	record_totals(&page, &totals);
	cr_assert_eq(totals.record_count, HEARTH_MAX_RECORDS);
	cr_assert_eq(totals.records_lost, 300 - HEARTH_MAX_RECORDS);
	cr_assert_eq(totals.visible_us, 3000);
	for (uint32_t i = 0; i < HEARTH_MAX_RECORDS; i++)
		cr_assert_eq(record_copy(&page, i, &copy), 0);
}

Test(record, hows_have_names)
{
	for (uint32_t how = HEARTH_COLD; how <= HEARTH_JIT; how++)
		cr_assert_eq(record_how_parse(record_how_name(how)), how);
	cr_assert_null(record_how_name(0));
	cr_assert_null(record_how_name(HEARTH_JIT + 1));
	cr_assert_eq(record_how_parse("lukewarm"), 0);
}

Test(record, conditions_come_back_and_what_cannot_be_is_not_there)
{
	const struct conditions put = {
		.rank = 0, .visible = 7, .connections = 32, .is_eager = true};
	struct conditions got;

	conditions_get(&page, &got);
	cr_expect(got.rank == CONDITIONS_NO_RANK && !got.is_eager && !got.cache);
	conditions_put(&page, &put);
	conditions_put_cache(&page, JIT_CACHE_LOCKED);
	conditions_get(&page, &got);
	cr_expect(got.rank == 0 && got.visible == 7 && got.connections == 32 && got.is_eager);
	cr_expect_eq(got.cache, JIT_CACHE_LOCKED);
	page.rank = UINT32_MAX;
	page.jit_cache = JIT_CACHE_COUNT;
	conditions_get(&page, &got);
	cr_expect(got.rank == CONDITIONS_NO_RANK && got.cache == JIT_CACHE_UNKNOWN);
}

Test(record, conditions_are_read_as_the_driver_does)
{
	cr_expect(conditions_is_eager("EAGER") && conditions_is_eager("eager"));
	cr_expect(!conditions_is_eager("LAZY") && !conditions_is_eager("") &&
		  !conditions_is_eager(NULL));
	cr_expect_eq(conditions_connections("32"), 32);
	for (const char **text = (const char *[]){"", "many", "-1", "99999999999999999999", NULL};
		*text; text++)
		cr_expect_eq(conditions_connections(*text), 0, "%s", *text);
	cr_expect_eq(conditions_connections(NULL), 0);
	cr_expect_eq(conditions_visible(NULL), 0);
	cr_expect(
		conditions_visible("0,1") && conditions_visible("0,1") != conditions_visible("1"));
}
