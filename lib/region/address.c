/* The broker's addresses. Runs in the user's program at its first call, in hearthd and the tools.
 * Never follows a symlink in a folder that others can write to. */
#include "region/address.h"

#include "base/env.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int address_check_folder(const char *path)
{
	struct stat info;

	/* Through syscall() for old C libraries, as in segment.c. */
	if (syscall(SYS_lstat, path, &info) < 0)
		return -errno;
	if (!S_ISDIR(info.st_mode))
		return -ENOTDIR;
	if (info.st_uid != geteuid() || info.st_mode & (S_IRWXG | S_IRWXO))
		return -EPERM;
	return 0;
}

int address_own_folder(char *ret_path, size_t size)
{
	const char *runtime = env_get(ENV_XDG_RUNTIME_DIR);
	int length;

	if (runtime && runtime[0] == '/' && !address_check_folder(runtime))
		length = snprintf(ret_path, size, "%s/hearth", runtime);
	else
		length = snprintf(ret_path, size, "/tmp/hearth-%u", (unsigned int)geteuid());
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static int join_path(struct address *ret_address, const char *folder)
{
	struct address address;
	int length = snprintf(address.path, sizeof(address.path), "%s/socket", folder);

	if (length < 0 || (size_t)length >= sizeof(address.path))
		return -ENAMETOOLONG;
	*ret_address = address;
	return 0;
}

static int copy_path(struct address *ret_address, const char *path)
{
	size_t length = strlen(path);

	if (length >= sizeof(ret_address->path))
		return -ENAMETOOLONG;
	memcpy(ret_address->path, path, length + 1);
	return 0;
}

const char *address_setting_fault(const char *path)
{
	if (path[0] != '/')
		return "no absolute path";
	return strlen(path) < ADDRESS_MAX ? NULL : "longer than a socket's path can be (107 bytes)";
}
_Static_assert(ADDRESS_MAX == 107 + 1, "address_setting_fault says so");

static int take_setting(struct address *ret_address, const char *path)
{
	return path[0] == '/' ? copy_path(ret_address, path) : -EINVAL;
}

size_t address_candidates(
	const struct settings *settings, struct address ret_candidates[ADDRESS_CANDIDATES])
{
	char folder[ADDRESS_MAX];
	size_t count = 0;

	if (settings->socket)
		return take_setting(&ret_candidates[0], settings->socket) ? 0 : 1;
	if (!address_own_folder(folder, sizeof(folder)) && !address_check_folder(folder) &&
		!join_path(&ret_candidates[count], folder))
		count++;
	if (!copy_path(&ret_candidates[count], ADDRESS_SYSTEM))
		count++;
	return count;
}

int address_own(const struct settings *settings, struct address *ret_address)
{
	char folder[ADDRESS_MAX];
	int rc;

	if (settings->socket)
		return take_setting(ret_address, settings->socket);
	rc = address_own_folder(folder, sizeof(folder));
	if (rc)
		return rc;
	if (mkdir(folder, 0700) < 0 && errno != EEXIST)
		return -errno;
	rc = address_check_folder(folder);
	return rc ? rc : join_path(ret_address, folder);
}
