/* Shared memory as sealed memfds. segment_map_* run in the user's program on the thread of its
 * first call; the rest in hearthd. Never touches memory whose size the other side could still
 * change.
 *
 * memfd_create, ftruncate, fcntl and fstat go through syscall(): the preload runs on C libraries
 * whose symbols for them are older than the build machine's (struct stat is the kernel's own on
 * x86-64). */
#include "region/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

int segment_create(const char *name, size_t size, int *ret_fd)
{
	const unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = (int)syscall(SYS_memfd_create, name, flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = (int)syscall(SYS_memfd_create, name, flags);
	if (fd < 0)
		return -errno;
	if (syscall(SYS_ftruncate, fd, (long)size) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

int segment_seal(int fd, bool is_read_only)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (is_read_only && syscall(SYS_fcntl, fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) < 0 &&
		errno != EINVAL)
		return -errno;
	return syscall(SYS_fcntl, fd, F_ADD_SEALS, seals | F_SEAL_SEAL) < 0 ? -errno : 0;
}

int segment_seal_whole(int fd)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

	return syscall(SYS_fcntl, fd, F_ADD_SEALS, seals) < 0 ? -errno : 0;
}

int segment_from_bytes(const char *name, const void *bytes, size_t size, int *ret_fd)
{
	int fd = -1, rc = segment_create(name, size, &fd);

	if (rc)
		return rc;
	if (pwrite(fd, bytes, size, 0) != (ssize_t)size)
		rc = -EIO;
	if (!rc)
		rc = segment_seal_whole(fd);
	if (!rc)
		rc = segment_read_only(fd, ret_fd);
	close(fd);
	return rc;
}

int segment_read_only(int fd, int *ret_fd)
{
	char path[32]; /* "/proc/self/fd/" and a number */
	int copy;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	copy = open(path, O_RDONLY | O_CLOEXEC);
	if (copy < 0)
		return -errno;
	*ret_fd = copy;
	return 0;
}

int segment_map(int fd, size_t size, bool is_writable, void **ret_memory)
{
	void *memory =
		mmap(NULL, size, PROT_READ | (is_writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	*ret_memory = memory;
	return 0;
}

void *segment_unmap(const void *memory, size_t size)
{
	if (memory)
		munmap((void *)memory, size);
	return NULL;
}

int segment_check(int fd, size_t size)
{
	const long wanted = F_SEAL_SHRINK | F_SEAL_GROW;
	long seals = syscall(SYS_fcntl, fd, F_GET_SEALS);
	struct stat info;

	if (seals < 0 || (seals & wanted) != wanted)
		return -EPROTO;
	if (syscall(SYS_fstat, fd, &info) < 0 || info.st_size != (off_t)size)
		return -EPROTO;
	return 0;
}

int segment_check_whole(int fd, size_t size)
{
	long seals = syscall(SYS_fcntl, fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_WRITE ? segment_check(fd, size) : -EPROTO;
}

int segment_map_region(int fd, const struct hearth_region **ret_region)
{
	struct hearth_region *region;
	void *memory = NULL;
	int rc = segment_check(fd, sizeof(*region));

	if (!rc)
		rc = segment_map(fd, sizeof(*region), false, &memory);
	if (rc)
		return rc;
	region = memory;
	if (region->magic != HEARTH_REGION_MAGIC || region->version != HEARTH_REGION_VERSION ||
		region->size != sizeof(*region)) {
		segment_unmap(memory, sizeof(*region));
		return -EPROTO;
	}
	*ret_region = region;
	return 0;
}

int segment_map_page(int fd, struct hearth_page **ret_page)
{
	struct hearth_page *page;
	void *memory = NULL;
	int rc = segment_check(fd, sizeof(*page));

	if (!rc)
		rc = segment_map(fd, sizeof(*page), true, &memory);
	if (rc)
		return rc;
	page = memory;
	if (page->magic != HEARTH_PAGE_MAGIC || page->version != HEARTH_REGION_VERSION ||
		page->size != sizeof(*page)) {
		segment_unmap(memory, sizeof(*page));
		return -EPROTO;
	}
	*ret_page = page;
	return 0;
}

void segment_init_page(struct hearth_page *page)
{
	page->version = HEARTH_REGION_VERSION;
	page->size = sizeof(*page);
	page->magic = HEARTH_PAGE_MAGIC;
}

int segment_init_page_file(int fd)
{
	const uint32_t head[] = {
		HEARTH_PAGE_MAGIC, HEARTH_REGION_VERSION, sizeof(struct hearth_page)};

	static_assert(
		offsetof(struct hearth_page, slot) == 3 * sizeof(uint32_t), "header of a page");
	return pwrite(fd, head, sizeof(head), 0) == (ssize_t)sizeof(head) ? 0 : -EIO;
}
