/* The list of programs that something is done for at their start. Reading runs in the constructor
 * of every preloaded process: it must stay at a few system calls. Writing runs in a program that
 * was learned from. */
#include "profile/starts.h"

#include "base/own_write.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STARTS_MAGIC UINT64_C(0x3253545241545348) /* "HSTARTS2" */

struct entry {
	uint32_t device; /* as the kernel encodes it */
	uint32_t reasons;
	uint64_t inode;
};

struct list {
	uint64_t magic;
	struct entry entries[STARTS_MAX];
};

/* Without the printf family, whose code no other process at its start would touch. */
static bool make_path(const char *state_dir, char ret_path[PATH_MAX])
{
	static const char name[] = "/starts";
	size_t length = strlen(state_dir);

	if (length + sizeof(name) > PATH_MAX)
		return false;
	memcpy(ret_path, state_dir, length);
	memcpy(ret_path + length, name, sizeof(name));
	return true;
}

/* Returns how many entries there are. */
static size_t read_list(const char *path, struct list *ret_list)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	ssize_t size = 0;

	if (fd < 0)
		return 0;
	if (!status_of_fd(fd, &status) && S_ISREG(status.st_mode) &&
		(status.st_uid == geteuid() || !status.st_uid) &&
		!(status.st_mode & (S_IWGRP | S_IWOTH)))
		size = read(fd, ret_list, sizeof(*ret_list));
	close(fd);
	if (size < (ssize_t)sizeof(ret_list->magic) || ret_list->magic != STARTS_MAGIC)
		return 0;
	return ((size_t)size - sizeof(ret_list->magic)) / sizeof(struct entry);
}

static bool read_self(struct entry *ret_entry)
{
	struct stat status;

	if (status_of_path("/proc/self/exe", &status))
		return false;
	*ret_entry = (struct entry){.device = (uint32_t)status.st_dev, .inode = status.st_ino};
	return true;
}

/* The entry's place, or the count. */
static size_t find(const struct list *list, size_t count, const struct entry *entry)
{
	size_t at = 0;

	while (at < count && (list->entries[at].device != entry->device ||
				     list->entries[at].inode != entry->inode))
		at++;
	return at;
}

uint32_t starts_of_self(const char *state_dir)
{
	char path[PATH_MAX];
	struct entry self;
	struct list list;
	size_t count, at;

	if (!make_path(state_dir, path))
		return 0;
	count = read_list(path, &list);
	if (!count || !read_self(&self))
		return 0;
	at = find(&list, count, &self);
	return at < count ? list.entries[at].reasons : 0;
}

static int write_list(const char *path, const struct list *list, size_t count)
{
	size_t size = sizeof(list->magic) + count * sizeof(struct entry);
	char temporary[PATH_MAX + 32];
	int error = 0, fd;

	snprintf(temporary, sizeof(temporary), "%s.new-%d", path, (int)getpid());
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (own_write(fd, list, size) != (ssize_t)size)
		error = -EIO;
	close(fd);
	if (!error && rename(temporary, path))
		error = -errno;
	if (error)
		unlink(temporary);
	return error;
}

int starts_note_self(const char *state_dir, uint32_t reason, bool is_listed)
{
	struct list list = {0};
	char path[PATH_MAX];
	struct entry self;
	size_t count, at;
	uint32_t before;

	if (!make_path(state_dir, path))
		return -ENAMETOOLONG;
	if (!read_self(&self))
		return -ENOENT;
	count = read_list(path, &list);
	at = find(&list, count, &self);
	before = at < count ? list.entries[at].reasons : 0;
	self.reasons = is_listed ? before | reason : before & ~reason;
	if (self.reasons == before && (!is_listed || !at))
		return 0;
	/* To the front, or out. */
	if (at == count)
		count = count < STARTS_MAX ? count + 1 : count;
	at = at < count ? at : count - 1;
	if (self.reasons) {
		memmove(list.entries + 1, list.entries, at * sizeof(*list.entries));
		list.entries[0] = self;
	} else {
		memmove(list.entries + at, list.entries + at + 1,
			(count - at - 1) * sizeof(*list.entries));
		count--;
	}
	list.magic = STARTS_MAGIC;
	return write_list(path, &list, count);
}
