/* Temporary files. Runs in the user's process, off the path of its calls, and in tools; no lock, no
 * allocation. */
#include "profile/temporary.h"

#include "base/clock.h"
#include "base/own_write.h"
#include "base/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define TEMPORARY_TRIES 8 /* names that another host's writer may hold */

int temporary_open(const char *folder, char ret_path[PROFILE_PATH_MAX])
{
	bool is_made = false;

	for (int try = 0; try < TEMPORARY_TRIES; try++) {
		int length = snprintf(ret_path, PROFILE_PATH_MAX, "%s/.tmp-%d-%llx-%d", folder,
			(int)getpid(), (unsigned long long)clock_realtime_us(), try);
		int fd, rc;

		if (length < 0 || length >= (int)PROFILE_PATH_MAX)
			return -ENAMETOOLONG;
		fd = open(ret_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0)
			return fd;
		if (errno == ENOENT && !is_made) {
			is_made = true;
			rc = state_dir_make(folder);
			if (rc)
				return rc;
		} else if (errno != EEXIST) {
			return -errno;
		}
	}
	return -EEXIST;
}

int temporary_write(int fd, const void *data, size_t size)
{
	const uint8_t *next = data;

	while (size) {
		ssize_t put = own_write(fd, next, size);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put ? -errno : -EIO;
		next += put;
		size -= (size_t)put;
	}
	return 0;
}
