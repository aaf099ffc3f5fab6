/* Segments: what is sealed stays as it is, and a segment that could change is not touched. */
#include "region/segment.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int make_page_fd(size_t size, bool is_sealed)
{
	void *memory;
	int fd;

	cr_assert_eq(segment_create("test", size, &fd), 0);
	cr_assert_eq(segment_map(fd, size, true, &memory), 0);
	if (size >= sizeof(struct hearth_page))
		segment_init_page(memory);
	segment_unmap(memory, size);
	if (is_sealed)
		cr_assert_eq(segment_seal(fd, false), 0);
	return fd;
}

static int make_region_fd(struct hearth_region **ret_region)
{
	void *memory;
	int fd;

	cr_assert_eq(segment_create("test", sizeof(struct hearth_region), &fd), 0);
	cr_assert_eq(segment_map(fd, sizeof(struct hearth_region), true, &memory), 0);
	*ret_region = memory;
	(*ret_region)->magic = HEARTH_REGION_MAGIC;
	(*ret_region)->version = HEARTH_REGION_VERSION;
	(*ret_region)->size = sizeof(struct hearth_region);
	cr_assert_eq(segment_seal(fd, true), 0);
	return fd;
}

Test(segment, a_page_is_mapped_and_written)
{
	int fd = make_page_fd(sizeof(struct hearth_page), true);
	struct hearth_page *page, *other;

	cr_assert_eq(segment_map_page(fd, &page), 0);
	cr_assert_eq(segment_map_page(fd, &other), 0);
	page->record_count = 5;
	cr_assert_eq(other->record_count, 5);
	cr_assert_eq(page->size, sizeof(*page));
	cr_assert_lt(ftruncate(fd, 10), 0);
	cr_assert_lt(ftruncate(fd, 1 << 20), 0);
}

Test(segment, a_page_of_every_other_size_is_refused)
{
	struct hearth_page *page;

	for (size_t size = 4096; size <= 2 * sizeof(*page); size += 4096) {
		int fd;

		if (size == sizeof(*page))
			continue;
		fd = make_page_fd(size, true);
		cr_assert_eq(segment_map_page(fd, &page), -EPROTO, "%zu", size);
		close(fd);
	}
}

Test(segment, what_can_still_shrink_is_refused)
{
	struct hearth_page *page;

	cr_assert_eq(segment_map_page(make_page_fd(sizeof(*page), false), &page), -EPROTO);
}

Test(segment, what_is_no_memfd_is_refused)
{
	struct hearth_page *page;
	const struct hearth_region *region;
	int pipes[2], file = open("/proc/self/exe", O_RDONLY);

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(segment_map_page(pipes[0], &page), -EPROTO);
	cr_assert_eq(segment_map_page(file, &page), -EPROTO);
	cr_assert_eq(segment_map_region(open("/dev/zero", O_RDWR), &region), -EPROTO);
	cr_assert_eq(segment_map_region(-1, &region), -EPROTO);
}

Test(segment, a_wrong_header_is_refused)
{
	struct hearth_region *writable;
	const struct hearth_region *region;
	int fd = make_region_fd(&writable);

	cr_assert_eq(segment_map_region(fd, &region), 0);
	writable->version++;
	cr_assert_eq(segment_map_region(fd, &region), -EPROTO);
	writable->version--;
	writable->size--;
	cr_assert_eq(segment_map_region(fd, &region), -EPROTO);
	writable->size++;
	writable->magic = HEARTH_PAGE_MAGIC;
	cr_assert_eq(segment_map_region(fd, &region), -EPROTO);
}

Test(segment, nobody_else_can_write_to_a_region)
{
	struct hearth_region *writable;
	int read_only, reopened, fd = make_region_fd(&writable);
	char path[64];

	cr_assert_eq(segment_read_only(fd, &read_only), 0);
	for (int i = 0; i < 2; i++) {
		int each = i ? fd : read_only;

		cr_assert_eq(
			mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, each, 0), MAP_FAILED);
		cr_assert_lt(pwrite(each, "x", 1, 0), 0);
	}
	/* Not by opening it anew either. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", read_only);
	reopened = open(path, O_RDWR);
	cr_assert(reopened < 0 || pwrite(reopened, "x", 1, 0) < 0);
	writable->client_count = 9; /* we still can */
}

Test(segment, final_bytes_cannot_be_changed)
{
	char got[6] = "";
	int fd;

	cr_assert_eq(segment_from_bytes("test", "hello", 5, &fd), 0);
	cr_assert_eq(pread(fd, got, 5, 0), 5);
	cr_assert_str_eq(got, "hello");
	cr_assert_eq(segment_check(fd, 5), 0);
	cr_assert_eq(segment_check(fd, 6), -EPROTO);
	cr_assert_eq(segment_check_whole(fd, 5), 0);
	cr_assert_eq(segment_check_whole(make_page_fd(4096, true), 4096), -EPROTO);
	cr_assert_eq(mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
}
