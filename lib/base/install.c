/* Finding the installation's other parts from the running program's own place. Runs in the tools
 * and in the broker, at their start; never in the user's process. Must never take a part from the
 * working directory or from a place that only an environment variable names. */
#include "base/install.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_PLACES 5

static const struct {
	const char *name;
	const char *places[MAX_PLACES]; /* relative to the program's folder; the build tree first */
} parts[INSTALL_PARTS] = {
	[INSTALL_PRELOAD] = {"libhearth.so",
		{"../lib/preload/libhearth.so", "../lib/hearth/libhearth.so",
			"../lib/x86_64-linux-gnu/hearth/libhearth.so",
			"../lib64/hearth/libhearth.so"}},
	[INSTALL_BROKER] = {"hearthd",
		{"hearthd", "../bin/hearthd", "../sbin/hearthd", "../libexec/hearth/hearthd"}},
};

int install_find_from(const char *folder, enum install_part part, size_t size, char *ret_path)
{
	for (int i = 0; i < MAX_PLACES && parts[part].places[i]; i++) {
		char place[PATH_MAX], whole[PATH_MAX];

		if (snprintf(place, sizeof(place), "%s/%s", folder, parts[part].places[i]) >=
			(int)sizeof(place))
			return -ENAMETOOLONG;
		if (!realpath(place, whole))
			continue;
		if (strlen(whole) >= size)
			return -ENAMETOOLONG;
		strcpy(ret_path, whole);
		return 0;
	}
	return -ENOENT;
}

int install_find(enum install_part part, size_t size, char *ret_path)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (length < 0)
		return -errno;
	self[length] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return install_find_from(self, part, size, ret_path);
}

const char *install_name(enum install_part part)
{
	return parts[part].name;
}
