/* The image store. Written in the user's process when a run is learned, off the path of its calls,
 * and by tools; read on the speculative thread. No lock, no allocation; leaves no descriptor. */
#include "profile/image_store.h"

#include "base/clock.h"
#include "base/status.h"
#include "profile/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "images"
#define DAY_S 86400

int image_store_folder(const char *profiles, char ret_folder[PROFILE_PATH_MAX])
{
	size_t length = strlen(profiles);

	while (length && profiles[length - 1] == '/')
		length--;
	while (length && profiles[length - 1] != '/')
		length--;
	if (length + sizeof(FOLDER) > PROFILE_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(ret_folder, profiles, length);
	memcpy(ret_folder + length, FOLDER, sizeof(FOLDER));
	return 0;
}

static int open_image(const char *path, uint64_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat file;

	if (fd < 0)
		return errno == ELOOP ? -ESTALE : -errno;
	if (!status_of_fd(fd, &file) && profile_is_trusted(&file) && (uint64_t)file.st_size == size)
		return fd;
	close(fd);
	return -ESTALE;
}

int image_store_put(
	const char *folder, const uint8_t digest[DIGEST_SIZE], const void *content, uint64_t size)
{
	char path[PROFILE_PATH_MAX], temporary[PROFILE_PATH_MAX];
	const void *known;
	int rc = profile_path(folder, digest, path), fd;

	if (rc)
		return rc;
	if (size > IMAGE_STORE_MAX)
		return -EFBIG;
	if (!image_store_map(folder, digest, size, &known)) {
		munmap((void *)(uintptr_t)known, size);
		return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) ? -errno : 0;
	}
	fd = temporary_open(folder, temporary);
	if (fd < 0)
		return fd;
	rc = temporary_write(fd, content, size);
	if (close(fd) && !rc) /* a full quota on NFS shows here */
		rc = -errno;
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (rc)
		unlink(temporary);
	else
		image_store_prune(folder, IMAGE_STORE_MAX);
	return rc;
}

int image_store_map(const char *folder, const uint8_t digest[DIGEST_SIZE], uint64_t size,
	const void **ret_content)
{
	char path[PROFILE_PATH_MAX];
	uint8_t found[DIGEST_SIZE];
	void *content;
	int rc = profile_path(folder, digest, path), fd;

	if (rc)
		return rc;
	fd = open_image(path, size);
	if (fd < 0)
		return fd;
	content = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	rc = content == MAP_FAILED ? -errno : 0;
	close(fd);
	if (rc)
		return rc;
	digest_of(content, size, found);
	if (memcmp(found, digest, sizeof(found))) {
		munmap(content, size);
		return -ESTALE;
	}
	*ret_content = content;
	return 0;
}

void image_store_mark(const char *folder, const uint8_t digest[DIGEST_SIZE])
{
	char path[PROFILE_PATH_MAX];
	struct stat file;

	if (!profile_path(folder, digest, path) && !status_of_path(path, &file) &&
		(uint64_t)file.st_mtim.tv_sec + DAY_S < clock_realtime_us() / 1000000)
		utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

int image_store_prune(const char *folder, uint64_t bytes_max)
{
	return profile_prune(folder, IMAGE_STORE_FILES_MAX, bytes_max);
}
