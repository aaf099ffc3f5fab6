/* runs.jsonl itself. Runs on the history's thread and in `hearth report`: may wait for the disk.
 * Never follows a symlink, never leaves a half-written file in the place of a whole one. */
#include "base/state_dir.h"
#include "broker/history.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "runs.jsonl"
#define NEW_NAME "runs.jsonl.new"
#define LOCK_NAME "runs.lock"
/* 240 runs of the longest line there can be; a file beyond that is not of our making. */
#define FILE_MAX_BYTES ((off_t)64 * 1024 * 1024)

static int open_file(int folder, const char *name, int flags)
{
	struct stat info;
	int fd = openat(folder, name, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_nlink > 1) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static int write_all(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written ? -errno : -EIO;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

static int read_all(int fd, char **ret_text, size_t *ret_length)
{
	struct stat info;
	size_t length = 0;
	char *text;

	if (fstat(fd, &info) < 0)
		return -errno;
	if (info.st_size > FILE_MAX_BYTES)
		return -EFBIG;
	text = malloc((size_t)info.st_size + 1);
	if (!text)
		return -ENOMEM;
	while (length < (size_t)info.st_size) {
		ssize_t got =
			pread(fd, text + length, (size_t)info.st_size - length, (off_t)length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	*ret_text = text;
	*ret_length = length;
	return 0;
}

/* Where the last `count` lines begin; 0 where there are no more than that. */
static size_t last_lines(const char *text, size_t length, size_t count)
{
	size_t at = length;

	if (at && text[at - 1] == '\n')
		at--;
	while (at) {
		if (text[at - 1] == '\n' && !--count)
			return at;
		at--;
	}
	return 0;
}

static size_t count_lines(const char *text, size_t length)
{
	size_t lines = 0;

	for (const char *at = text; (at = memchr(at, '\n', (size_t)(text + length - at))); at++)
		lines++;
	return lines;
}

/* A line cut short by a full disk or a crash must not swallow the next one. */
static bool ends_in_line(int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);
	char last;

	return size <= 0 || pread(fd, &last, 1, size - 1) != 1 || last == '\n';
}

static int replace(int folder, const char *text, size_t length)
{
	int fd, rc;

	unlinkat(folder, NEW_NAME, 0);
	fd = open_file(folder, NEW_NAME, O_WRONLY | O_EXCL);
	if (fd < 0)
		return fd;
	rc = write_all(fd, text, length);
	close(fd);
	if (!rc && renameat(folder, NEW_NAME, folder, FILE_NAME) < 0)
		rc = -errno;
	if (rc)
		unlinkat(folder, NEW_NAME, 0);
	return rc;
}

static int cut(int folder, int fd)
{
	size_t length = 0, from;
	char *text = NULL;
	int rc = read_all(fd, &text, &length);

	if (rc == -EFBIG)
		return replace(folder, "", 0);
	if (rc)
		return rc;
	if (count_lines(text, length) > HISTORY_RUNS + HISTORY_SLACK) {
		from = last_lines(text, length, HISTORY_RUNS);
		rc = replace(folder, text + from, length - from);
	}
	free(text);
	return rc;
}

static int append_in(int folder, const char *line, size_t length)
{
	int fd = open_file(folder, FILE_NAME, O_RDWR | O_APPEND);
	int rc = 0;

	if (fd < 0)
		return fd;
	if (!ends_in_line(fd))
		rc = write_all(fd, "\n", 1);
	if (!rc)
		rc = write_all(fd, line, length);
	if (!rc)
		rc = cut(folder, fd);
	close(fd);
	return rc;
}

/* Two brokers of one user may share a home folder. Where it cannot lock, it goes on. */
static int lock_file(int folder)
{
	int lock = open_file(folder, LOCK_NAME, O_RDWR);

	if (lock >= 0)
		flock(lock, LOCK_EX);
	return lock;
}

int history_append(const char *folder, const char *line, size_t length)
{
	int folder_fd, lock, rc = state_dir_make(folder);

	if (rc)
		return rc;
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder_fd < 0)
		return -errno;
	lock = lock_file(folder_fd);
	rc = append_in(folder_fd, line, length);
	if (lock >= 0)
		close(lock);
	close(folder_fd);
	return rc;
}

int history_clear(const char *folder)
{
	int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lock, rc = 0;

	if (folder_fd < 0)
		return -errno;
	lock = lock_file(folder_fd);
	if (unlinkat(folder_fd, FILE_NAME, 0) < 0)
		rc = -errno;
	if (lock >= 0)
		close(lock);
	close(folder_fd);
	return rc;
}
