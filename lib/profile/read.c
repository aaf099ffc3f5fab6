/* Reading a profile. Runs in the user's process at its start: open, fstat, read, close and nothing
 * else; no allocation; no message. Whatever is odd counts as no profile. */
#include "base/status.h"
#include "profile/extension.h"
#include "profile/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int profile_path(
	const char *folder, const uint8_t program[DIGEST_SIZE], char ret_path[PROFILE_PATH_MAX])
{
	size_t length = strlen(folder);

	/* Not snprintf, since every process there is may come here: base/at_start.h. */
	if (length + 1 + DIGEST_SIZE >= PROFILE_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_path, folder, length);
	ret_path[length] = '/';
	digest_format(program, DIGEST_SIZE / 2, ret_path + length + 1);
	return 0;
}

static bool read_fully(int fd, void *buffer, size_t size)
{
	uint8_t *next = buffer;

	while (size) {
		ssize_t got = read(fd, next, size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		next += got;
		size -= (size_t)got;
	}
	return true;
}

bool profile_is_trusted(const struct stat *file)
{
	return S_ISREG(file->st_mode) && !(file->st_mode & (S_IWGRP | S_IWOTH)) &&
	       (file->st_uid == geteuid() || file->st_uid == 0);
}

int profile_read_part(
	int fd, uint64_t size, struct profile *ret_profile, struct profile_extension *extension)
{
	if (size < sizeof(*ret_profile) || size > PROFILE_FILE_MAX ||
		!read_fully(fd, ret_profile, sizeof(*ret_profile)) ||
		!profile_is_sound(ret_profile) || ret_profile->file_size != size)
		return PROFILE_NONE;
	if (!extension)
		return 0;
	if (ret_profile->extension_size > extension->room)
		return -ENOSPC;
	extension->size = ret_profile->extension_size;
	if (!read_fully(fd, extension->data, extension->size) ||
		!profile_extension_is_sound(ret_profile, extension)) {
		extension->size = 0;
		return PROFILE_NONE;
	}
	return 0;
}

static int read_open_file(int fd, struct profile *ret_profile, struct profile_extension *extension)
{
	struct stat file;

	if (status_of_fd(fd, &file))
		return -errno;
	if (!profile_is_trusted(&file))
		return PROFILE_NONE;
	return profile_read_part(fd, (uint64_t)file.st_size, ret_profile, extension);
}

int profile_read_file(
	const char *path, struct profile *ret_profile, struct profile_extension *extension)
{
	/* Not blocking: somebody may have put a FIFO there. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	int rc;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EACCES
			       ? PROFILE_NONE
			       : -errno;
	rc = read_open_file(fd, ret_profile, extension);
	close(fd);
	return rc;
}

int profile_read(const char *folder, const uint8_t program[DIGEST_SIZE],
	struct profile *ret_profile, struct profile_extension *extension)
{
	char path[PROFILE_PATH_MAX];
	int rc = profile_path(folder, program, path);

	if (rc)
		return rc;
	rc = profile_read_file(path, ret_profile, extension);
	if (!rc && memcmp(ret_profile->program, program, DIGEST_SIZE))
		return PROFILE_NONE;
	return rc;
}

int profile_find(const char *folder, const char *system_folder, const uint8_t program[DIGEST_SIZE],
	struct profile *ret_profile, struct profile_extension *extension)
{
	int rc = profile_read(folder, program, ret_profile, extension);

	if (rc == PROFILE_NONE && system_folder)
		rc = profile_read(system_folder, program, ret_profile, extension);
	return rc;
}
