/* The folder of waiting spares. Runs in `hearth run --spare`, `hearth spare` and in what holds a
 * spare. Takes a connection only from and to its own user's processes. */
#include "spare/folder.h"

#include "base/clock.h"
#include "base/socket.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONNECT_LIMIT_US 20000
#define NAME_LENGTH 16 /* of the digest, in hex */

int folder_find(int makes, char ret_path[ADDRESS_MAX])
{
	char own[ADDRESS_MAX], path[ADDRESS_MAX];
	int rc = address_own_folder(own, sizeof(own)), length;

	if (rc)
		return rc;
	length = snprintf(path, sizeof(path), "%s/spares", own);
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	if (makes && mkdir(own, 0700) && errno != EEXIST)
		return -errno;
	rc = address_check_folder(own);
	if (rc)
		return rc;
	if (makes && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	rc = address_check_folder(path);
	if (!rc)
		memcpy(ret_path, path, sizeof(path));
	return rc;
}

int folder_name(const char *folder, uint64_t digest, pid_t holder, char ret_path[ADDRESS_MAX])
{
	int length = snprintf(
		ret_path, ADDRESS_MAX, "%s/%016jx.%d", folder, (uintmax_t)digest, (int)holder);

	return length < 0 || length >= ADDRESS_MAX ? -ENAMETOOLONG : 0;
}

/* 0 with a connection to a process of our own. */
static int connect_own(const char *path, int *ret_fd)
{
	struct socket_peer peer;
	int fd, rc = socket_connect(path, clock_monotonic_us() + CONNECT_LIMIT_US, &fd);

	if (rc)
		return rc;
	rc = socket_peer(fd, &peer);
	if (!rc && peer.uid != geteuid())
		rc = -EPERM;
	if (rc)
		close(fd);
	else
		*ret_fd = fd;
	return rc;
}

int folder_each(
	const uint64_t *digest, int (*take)(int fd, const char *path, void *data), void *data)
{
	char folder[ADDRESS_MAX], prefix[NAME_LENGTH + 2] = "";
	struct dirent *entry;
	DIR *dir;
	int rc = folder_find(0, folder);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	dir = opendir(folder);
	if (!dir)
		return -errno;
	if (digest)
		snprintf(prefix, sizeof(prefix), "%016jx.", (uintmax_t)*digest);
	while (!rc && (entry = readdir(dir))) {
		char path[ADDRESS_MAX];
		int fd, length = snprintf(path, sizeof(path), "%.*s/%s", (int)strlen(folder),
				folder, entry->d_name);

		if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) ||
			length < 0 || (size_t)length >= sizeof(path))
			continue;
		rc = connect_own(path, &fd);
		if (rc == -ECONNREFUSED)
			unlink(path);
		if (rc) {
			rc = 0;
			continue;
		}
		rc = take(fd, path, data);
		close(fd);
	}
	closedir(dir);
	return rc;
}

bool folder_has(uint64_t digest)
{
	char folder[ADDRESS_MAX], prefix[NAME_LENGTH + 2];
	struct dirent *entry;
	bool is_there = false;
	DIR *dir = folder_find(0, folder) ? NULL : opendir(folder);

	snprintf(prefix, sizeof(prefix), "%016jx.", (uintmax_t)digest);
	while (dir && !is_there && (entry = readdir(dir)))
		is_there = !strncmp(entry->d_name, prefix, strlen(prefix));
	if (dir)
		closedir(dir);
	return is_there;
}
