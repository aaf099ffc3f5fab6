/* Where a kernelspec is: by Jupyter's own order (jupyter_core, jupyter_path). Runs in `hearth
 * jupyter`; only looks. */
#include "launch/kernelspec.h"

#include "base/env.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define JUPYTER "jupyter"
#define DATA "share/jupyter"

struct search {
	const char *name;
	bool or_backup;
	char *folder; /* PATH_MAX bytes: the result */
};

static bool has_file(const char *folder, const char *name)
{
	char file[PATH_MAX];
	struct stat info;

	return snprintf(file, sizeof(file), "%s/%s", folder, name) < PATH_MAX &&
	       !stat(file, &info) && S_ISREG(info.st_mode);
}

static bool has_spec(const char *data, struct search *search)
{
	char kernels[PATH_MAX];
	struct dirent *entry;
	bool is_found = false;
	DIR *folder;

	if (snprintf(kernels, sizeof(kernels), "%s/kernels", data) >= PATH_MAX)
		return false;
	folder = opendir(kernels);
	while (folder && !is_found && (entry = readdir(folder)))
		is_found =
			!strcasecmp(entry->d_name, search->name) &&
			snprintf(search->folder, PATH_MAX, "%s/%s", kernels, entry->d_name) <
				PATH_MAX &&
			(has_file(search->folder, KERNELSPEC_NAME) ||
				(search->or_backup && has_file(search->folder, KERNELSPEC_BACKUP)));
	if (folder)
		closedir(folder);
	return is_found;
}

static bool has_spec_below(const char *prefix, const char *inside, struct search *search)
{
	char data[PATH_MAX];

	return prefix && *prefix == '/' &&
	       snprintf(data, sizeof(data), "%s/%s", prefix, inside) < PATH_MAX &&
	       has_spec(data, search);
}

/* A ':'-separated list of data folders. */
static bool is_in_list(const char *list, struct search *search)
{
	while (list && *list) {
		size_t length = strcspn(list, ":");
		char data[PATH_MAX];

		if (snprintf(data, sizeof(data), "%.*s", (int)length, list) < PATH_MAX &&
			*data == '/' && has_spec(data, search))
			return true;
		list += length + (list[length] == ':');
	}
	return false;
}

/* /x of /x/bin/NAME; in place. */
static void go_to_prefix(char *path)
{
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(path, '/');

		if (slash)
			*slash = '\0';
	}
}

/* The prefix that we are installed below. */
static void own_prefix(char ret_prefix[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret_prefix, PATH_MAX - 1);

	ret_prefix[length > 0 ? length : 0] = '\0';
	go_to_prefix(ret_prefix);
}

/* As a shell would find it. */
static bool find_jupyter(char ret_path[PATH_MAX])
{
	const char *list = env_get(ENV_PATH);

	while (list && *list) {
		size_t length = strcspn(list, ":");
		struct stat info;

		if (*list == '/' &&
			snprintf(ret_path, PATH_MAX, "%.*s/" JUPYTER, (int)length, list) <
				PATH_MAX &&
			!stat(ret_path, &info) && S_ISREG(info.st_mode) && !access(ret_path, X_OK))
			return true;
		list += length + (list[length] == ':');
	}
	return false;
}

bool kernelspec_jupyter_prefix(char ret_prefix[PATH_MAX])
{
	char path[PATH_MAX];

	if (!find_jupyter(path) || !realpath(path, ret_prefix))
		return false;
	go_to_prefix(ret_prefix);
	return true;
}

/* Such a one comes before the user's; any other python's prefix behind it. */
static bool is_environment(const char *prefix)
{
	char path[PATH_MAX];

	return (snprintf(path, sizeof(path), "%s/pyvenv.cfg", prefix) < PATH_MAX &&
		       !access(path, F_OK)) ||
	       (snprintf(path, sizeof(path), "%s/conda-meta", prefix) < PATH_MAX &&
		       !access(path, F_OK));
}

static bool is_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			return false;
	return *name && *name != '.';
}

static bool is_in_users(struct search *search)
{
	const char *data = env_get(ENV_JUPYTER_DATA_DIR), *shared = env_get(ENV_XDG_DATA_HOME);

	if (data)
		return *data == '/' && has_spec(data, search);
	return shared ? has_spec_below(shared, JUPYTER, search)
		      : has_spec_below(env_get(ENV_HOME), ".local/" DATA, search);
}

int kernelspec_find(const char *name, bool or_backup, char ret_folder[PATH_MAX])
{
	struct search search = {name, or_backup, ret_folder};
	char own[PATH_MAX], jupyters[PATH_MAX] = "";

	if (!is_name(name))
		return -EINVAL;
	own_prefix(own);
	kernelspec_jupyter_prefix(jupyters);
	if (is_in_list(env_get(ENV_JUPYTER_PATH), &search) ||
		has_spec_below(env_get(ENV_VIRTUAL_ENV), DATA, &search) ||
		has_spec_below(env_get(ENV_CONDA_PREFIX), DATA, &search) ||
		has_spec_below(own, DATA, &search) ||
		(is_environment(jupyters) && has_spec_below(jupyters, DATA, &search)) ||
		is_in_users(&search) || has_spec_below(jupyters, DATA, &search) ||
		has_spec("/usr/local/" DATA, &search) || has_spec("/usr/" DATA, &search))
		return 0;
	return -ENOENT;
}
