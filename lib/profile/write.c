/* Writing a profile. Runs in the user's process once a run has shown what there is to learn, off
 * the path of its calls, and in tools. No lock and no allocation; leaves no descriptor and, unless
 * it is killed, no temporary file. */
#include "base/status.h"
#include "profile/extension.h"
#include "profile/profile.h"
#include "profile/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROWTH_STEP 65536 /* a profile that grew by so much has its folder's size looked at */

/* Sizes and digests, once everything else is settled. */
static void seal(struct profile *profile, const struct profile_extension *extension)
{
	const uint8_t *covered = (const uint8_t *)&profile->extension_digest;

	profile->extension_size = extension ? extension->size : 0;
	profile->file_size = (uint32_t)sizeof(*profile) + profile->extension_size;
	digest_of(extension ? extension->data : NULL, profile->extension_size,
		profile->extension_digest);
	digest_of(covered, sizeof(*profile) - offsetof(struct profile, extension_digest),
		profile->head_digest);
}

/* Would a reader take it? What was built wrong must not come to lie on a disk. */
static bool is_writable(const struct profile *profile, const struct profile_extension *extension)
{
	return profile_is_sound(profile) &&
	       (!extension || extension_is_walkable(extension->data, extension->size));
}

int profile_seen(
	const char *folder, const uint8_t program[DIGEST_SIZE], uint8_t ret_seen[DIGEST_SIZE])
{
	char path[PROFILE_PATH_MAX];
	int rc = profile_path(folder, program, path), fd;

	if (rc)
		return rc;
	memset(ret_seen, 0, DIGEST_SIZE);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return 0;
	if (pread(fd, ret_seen, DIGEST_SIZE, offsetof(struct profile, head_digest)) != DIGEST_SIZE)
		memset(ret_seen, 0, DIGEST_SIZE);
	close(fd);
	return 0;
}

static bool is_changed(const char *folder, const struct profile *profile, const uint8_t *seen)
{
	uint8_t now[DIGEST_SIZE];

	return seen &&
	       (profile_seen(folder, profile->program, now) || memcmp(now, seen, DIGEST_SIZE));
}

int profile_write(
	const char *folder, struct profile *profile, const struct profile_extension *extension)
{
	return profile_replace(folder, profile, extension, NULL);
}

int profile_replace(const char *folder, struct profile *profile,
	const struct profile_extension *extension, const uint8_t *seen)
{
	char path[PROFILE_PATH_MAX], temporary[PROFILE_PATH_MAX];
	struct stat before = {0};
	int rc, fd;

	if (extension && extension->size > PROFILE_EXTENSION_MAX)
		return -EFBIG;
	seal(profile, extension);
	if (!is_writable(profile, extension))
		return -EINVAL;
	rc = profile_path(folder, profile->program, path);
	if (rc)
		return rc;
	fd = temporary_open(folder, temporary);
	if (fd < 0)
		return fd;
	rc = temporary_write(fd, profile, sizeof(*profile));
	if (!rc && extension)
		rc = temporary_write(fd, extension->data, extension->size);
	if (close(fd) && !rc) /* a full quota on NFS shows here */
		rc = -errno;
	if (status_of_path(path, &before))
		before.st_size = -GROWTH_STEP;
	if (!rc && is_changed(folder, profile, seen))
		rc = PROFILE_CHANGED;
	if (!rc && rename(temporary, path))
		rc = -errno;
	if (rc) {
		unlink(temporary);
		return rc;
	}
	if ((off_t)profile->file_size >= before.st_size + GROWTH_STEP)
		profile_tidy(folder);
	return 0;
}
