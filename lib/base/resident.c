/* Residency of files. Runs on threads of ours in the user's program. */
#include "base/resident.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Of linux/fs.h and of x86-64, which older headers lack. */
#define NUMBER_PREADV2 327
#define NOT_WAITING 8 /* RWF_NOWAIT */

#define PAGE 4096u

/* mincore(2) answers only about files that the caller could write to: of others all is said to be
 * there. */
static int ask_mapping(int fd, uint64_t offset)
{
	unsigned char answer;
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset & ~(PAGE - 1ul)));
	int rc;

	if (page == MAP_FAILED)
		return -EOPNOTSUPP;
	rc = mincore(page, PAGE, &answer) ? -EOPNOTSUPP : answer & 1;
	munmap(page, PAGE);
	return rc;
}

int resident_page(int fd, const struct stat *status, uint64_t offset)
{
	char byte;
	struct iovec place = {&byte, 1};
	uid_t user = geteuid();

	if (offset >= (uint64_t)status->st_size)
		return 1;
	if (syscall(NUMBER_PREADV2, fd, &place, 1UL, offset, 0UL, NOT_WAITING) >= 0)
		return 1;
	if (errno == EAGAIN)
		return 0;
	return !user || status->st_uid == user ? ask_mapping(fd, offset) : -EOPNOTSUPP;
}
