/* The state folder's path. Runs in every process of Hearth; never creates anything in the user's
 * program unless asked by state_dir_make. */
#include "base/state_dir.h"

#include "base/env.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

int state_dir_path(const struct settings *settings, char *ret_path, size_t size)
{
	const char *tail = "", *folder = settings->state_dir;
	size_t length, tail_length;

	if (!folder || folder[0] != '/') {
		folder = env_get(ENV_XDG_STATE_HOME);
		tail = "/hearth";
	}
	if (!folder || folder[0] != '/') {
		folder = env_get(ENV_HOME);
		tail = "/.local/state/hearth";
	}
	if (!folder || folder[0] != '/')
		return -ENOENT;
	/* Not snprintf, since every process there is may come here: base/at_start.h. */
	length = strlen(folder);
	tail_length = strlen(tail);
	if (length >= size || tail_length >= size - length)
		return -ENAMETOOLONG;
	memcpy(ret_path, folder, length);
	memcpy(ret_path + length, tail, tail_length + 1);
	return 0;
}

int state_dir_make(const char *path)
{
	char part[PATH_MAX];
	size_t length = strlen(path);
	bool is_read_only = false; /* said of folders that are there too */

	if (length >= sizeof(part))
		return -ENAMETOOLONG;
	memcpy(part, path, length + 1);
	for (size_t i = 1; i <= length; i++) {
		if (part[i] != '/' && part[i])
			continue;
		part[i] = 0;
		if (mkdir(part, 0700) < 0 && errno != EEXIST) {
			if (i == length || errno != EROFS)
				return is_read_only && errno == ENOENT ? -EROFS : -errno;
			is_read_only = true;
		}
		part[i] = path[i];
	}
	return 0;
}
