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

/* What the open file says; whatever lies behind its first line goes to `ret_details`. */
static enum verdict read_text(int fd, char ret_details[VERDICT_DETAILS_MAX])
{
	enum verdict verdict = VERDICT_NONE;
	char text[sizeof(passed)];
	ssize_t size = read(fd, text, sizeof(text) - 1);

	text[size > 0 ? size : 0] = '\0';
	if (!strcmp(text, passed))
		verdict = VERDICT_PASSED;
	else if (!strcmp(text, failed))
		verdict = VERDICT_FAILED;
	if (ret_details && verdict != VERDICT_NONE) {
		size = read(fd, ret_details, VERDICT_DETAILS_MAX - 1);
		ret_details[size > 0 ? size : 0] = '\0';
	}
	return verdict;
}

static enum verdict read_file(
	const char *state_dir, const struct build_id *driver, char ret_details[VERDICT_DETAILS_MAX])
{
	enum verdict verdict = VERDICT_NONE;
	struct stat status;
	char path[PATH_MAX];
	int fd;

	if (verdict_path(state_dir, driver, "", path))
		return VERDICT_NONE;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return VERDICT_NONE;
	if (!status_of_fd(fd, &status) && S_ISREG(status.st_mode) &&
		(status.st_uid == geteuid() || !status.st_uid) &&
		!(status.st_mode & (S_IWGRP | S_IWOTH)))
		verdict = read_text(fd, ret_details);
	close(fd);
	return verdict;
}

enum verdict verdict_read(const char *state_dir, const struct build_id *driver)
{
	return read_file(state_dir, driver, NULL);
}

enum verdict verdict_find(
	const char *state_dir, const struct build_id *driver, char ret_details[VERDICT_DETAILS_MAX])
{
	enum verdict verdict = VERDICT_NONE;

	if (ret_details)
		ret_details[0] = '\0';
	if (state_dir[0])
		verdict = read_file(state_dir, driver, ret_details);
	return verdict == VERDICT_NONE ? read_file(VERDICT_SYSTEM_DIR, driver, ret_details)
				       : verdict;
}

static int write_file(const char *path, enum verdict_readers readers, const char *text)
{
	size_t size = strlen(text);
	int error = 0, fd;

	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, text, size) != (ssize_t)size)
		error = -EIO;
	if (!error && readers == VERDICT_FOR_ALL && fchmod(fd, 0644))
		error = -errno;
	if (close(fd) && !error)
		error = -errno;
	return error;
}

int verdict_write(const char *state_dir, const struct build_id *driver,
	enum verdict_readers readers, bool is_passed, const char *details)
{
	char path[PATH_MAX], temporary[PATH_MAX], folder[PATH_MAX], suffix[32], text[TEXT_MAX];
	int error;

	if ((size_t)snprintf(text, sizeof(text), "%s%s", is_passed ? passed : failed, details) >=
		sizeof(text))
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
	if (!error && readers == VERDICT_FOR_ALL && chmod(folder, 0755))
		error = -errno;
	if (error)
		return error;
	error = write_file(temporary, readers, text);
	if (!error && rename(temporary, path))
		error = -errno;
	if (error)
		unlink(temporary);
	return error;
}
