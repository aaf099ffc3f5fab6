/* Reading and writing verdicts. Reading runs in the user's process on the speculative thread: no
 * allocation, no lock. Writing runs in hearthd and hearth. */
#include "driver/verdict.h"

#include "base/state_dir.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX 2048
static const char passed[] = "hearth undo 1 passed\n";
static const char failed[] = "hearth undo 1 failed\n";

static int verdict_path(const char *state_dir, const struct build_id *driver, const char *suffix,
	char ret_path[PATH_MAX])
{
	char id[2 * BUILD_ID_MAX + 1];
	int length;

	if (!driver->size)
		return -ENOENT;
	build_id_format(driver, id);
	length = snprintf(ret_path, PATH_MAX, "%s/undo/%s%s", state_dir, id, suffix);
	return length < 0 || length >= PATH_MAX ? -ENAMETOOLONG : 0;
}

enum verdict verdict_read(const char *state_dir, const struct build_id *driver)
{
	char path[PATH_MAX], text[sizeof(passed)];
	enum verdict verdict = VERDICT_NONE;
	struct stat status;
	ssize_t size;
	int fd;

	if (verdict_path(state_dir, driver, "", path))
		return VERDICT_NONE;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return VERDICT_NONE;
	if (!status_of_fd(fd, &status) && S_ISREG(status.st_mode) &&
		(status.st_uid == geteuid() || !status.st_uid) &&
		!(status.st_mode & (S_IWGRP | S_IWOTH))) {
		size = read(fd, text, sizeof(text) - 1);
		text[size > 0 ? size : 0] = '\0';
		if (!strcmp(text, passed))
			verdict = VERDICT_PASSED;
		else if (!strcmp(text, failed))
			verdict = VERDICT_FAILED;
	}
	close(fd);
	return verdict;
}

int verdict_write(
	const char *state_dir, const struct build_id *driver, bool is_passed, const char *details)
{
	char path[PATH_MAX], temporary[PATH_MAX], folder[PATH_MAX], suffix[32], text[TEXT_MAX];
	size_t size;
	int error, fd;

	size = (size_t)snprintf(text, sizeof(text), "%s%s", is_passed ? passed : failed, details);
	if (size >= sizeof(text))
		return -EMSGSIZE;
	snprintf(suffix, sizeof(suffix), ".new-%d", getpid());
	error = verdict_path(state_dir, driver, "", path);
	if (!error)
		error = verdict_path(state_dir, driver, suffix, temporary);
	if (error)
		return error;
	strcpy(folder, path);
	*strrchr(folder, '/') = '\0';
	error = state_dir_make(folder);
	if (error)
		return error;
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, size) != (ssize_t)size)
		error = -EIO;
	if (close(fd) && !error)
		error = -errno;
	if (!error && rename(temporary, path))
		error = -errno;
	if (error)
		unlink(temporary);
	return error;
}
