/* Wrapping Jupyter's kernelspecs. Runs in `hearth jupyter`. Must leave either the old file or the
 * new one, whatever ends it, and never lose what was there. */
#include "launch/kernelspec.h"

#include "base/env.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MODE 0644
#define MARK "hearth" /* under "metadata": this file is ours */
#define TEMPORARY ".hearth-new"

static bool has_spec(const char *data, const char *name, char ret_folder[PATH_MAX])
{
	char file[PATH_MAX + sizeof("/" KERNELSPEC_NAME)];
	struct stat info;

	if (snprintf(ret_folder, PATH_MAX, "%s/kernels/%s", data, name) >= PATH_MAX)
		return false;
	snprintf(file, sizeof(file), "%s/" KERNELSPEC_NAME, ret_folder);
	return !stat(file, &info) && S_ISREG(info.st_mode);
}

static bool has_spec_below(
	const char *prefix, const char *inside, const char *name, char ret_folder[PATH_MAX])
{
	char data[PATH_MAX];

	return prefix && *prefix == '/' &&
	       snprintf(data, sizeof(data), "%s/%s", prefix, inside) < PATH_MAX &&
	       has_spec(data, name, ret_folder);
}

/* A ':'-separated list of data folders. */
static bool is_in_list(const char *list, const char *name, char ret_folder[PATH_MAX])
{
	while (list && *list) {
		size_t length = strcspn(list, ":");
		char data[PATH_MAX];

		if (snprintf(data, sizeof(data), "%.*s", (int)length, list) < PATH_MAX &&
			*data == '/' && has_spec(data, name, ret_folder))
			return true;
		list += length + (list[length] == ':');
	}
	return false;
}

/* The prefix that we are installed below: /x of /x/bin/hearth. */
static void own_prefix(char ret_prefix[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", ret_prefix, PATH_MAX - 1);

	ret_prefix[length > 0 ? length : 0] = '\0';
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr(ret_prefix, '/');

		if (slash)
			*slash = '\0';
	}
}

static bool is_name(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			return false;
	return *name && *name != '.';
}

int kernelspec_find(const char *name, char ret_folder[PATH_MAX])
{
	const char *data = env_get(ENV_JUPYTER_DATA_DIR), *shared = env_get(ENV_XDG_DATA_HOME);
	char own[PATH_MAX];

	if (!is_name(name))
		return -EINVAL;
	own_prefix(own);
	if (is_in_list(env_get(ENV_JUPYTER_PATH), name, ret_folder) ||
		has_spec_below(env_get(ENV_VIRTUAL_ENV), "share/jupyter", name, ret_folder) ||
		has_spec_below(env_get(ENV_CONDA_PREFIX), "share/jupyter", name, ret_folder) ||
		has_spec_below(own, "share/jupyter", name, ret_folder))
		return 0;
	if (data ? has_spec(data, name, ret_folder)
		 : (shared ? has_spec_below(shared, "jupyter", name, ret_folder)
			   : has_spec_below(
				     env_get(ENV_HOME), ".local/share/jupyter", name, ret_folder)))
		return 0;
	return has_spec("/usr/local/share/jupyter", name, ret_folder) ||
			       has_spec("/usr/share/jupyter", name, ret_folder)
		       ? 0
		       : -ENOENT;
}

static int open_folder(const char *folder)
{
	int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The file's text, NUL-terminated and freed by the caller. */
static int read_file(int folder, const char *name, char **ret_text, size_t *ret_size)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC), rc = 0;
	char *text = NULL;
	size_t size = 0;
	FILE *copy, *file = fd < 0 ? NULL : fdopen(fd, "r");
	int c;

	if (!file)
		return -errno;
	copy = open_memstream(&text, &size);
	while (copy && (c = getc(file)) != EOF)
		putc(c, copy);
	if (!copy || ferror(file))
		rc = -EIO;
	if (copy && fclose(copy))
		rc = -ENOMEM;
	fclose(file);
	if (rc) {
		free(text);
		return rc;
	}
	*ret_text = text;
	*ret_size = size;
	return 0;
}

static int write_file(int folder, const char *name, const char *text, size_t size)
{
	int fd = openat(folder, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		FILE_MODE);
	int rc = 0;

	if (fd < 0)
		return -errno;
	while (size && !rc) {
		ssize_t got = write(fd, text, size);

		if (got < 0 && errno != EINTR)
			rc = -errno;
		text += got > 0 ? got : 0;
		size -= got > 0 ? (size_t)got : 0;
	}
	if (fsync(fd) < 0 && !rc)
		rc = -errno;
	close(fd);
	if (!rc && renameat(folder, TEMPORARY, folder, name) < 0)
		rc = -errno;
	if (rc)
		unlinkat(folder, TEMPORARY, 0);
	return rc;
}

/* Jupyter puts its own interpreter in the place of a first word that is just "python"; behind
 * `hearth run` it would not. So name the one that the kernelspec came with. */
static json_t *first_word(const char *folder, const json_t *word)
{
	static const char inside[] = "/share/jupyter/kernels/";
	const char *text = json_string_value(word), *end = strstr(folder, inside);
	char path[2 * PATH_MAX];

	if (end && !strncmp(text, "python", strlen("python")) && !strchr(text, '/')) {
		snprintf(path, sizeof(path), "%.*s/bin/%s", (int)(end - folder), folder, text);
		if (!access(path, X_OK))
			return json_string(path);
	}
	return json_string(text);
}

/* The wrapped kernelspec's text, freed by the caller. */
static int make_wrapped(
	const char *folder, const char *hearth, const char *imports, json_t *spec, char **ret_text)
{
	json_t *argv = json_object_get(spec, "argv"), *metadata = json_object_get(spec, "metadata");
	json_t *wrapped = json_pack("[s,s]", hearth, "run"), *word;
	size_t i;

	if (imports) {
		json_array_append_new(wrapped, json_string("--spare"));
		json_array_append_new(wrapped, json_string("--keep"));
		json_array_append_new(wrapped, json_string(imports));
	}
	json_array_append_new(wrapped, json_string("--"));
	json_array_foreach(argv, i, word)
		json_array_append_new(wrapped, i ? json_incref(word) : first_word(folder, word));
	if (!json_is_object(metadata)) {
		json_object_set_new(spec, "metadata", json_object());
		metadata = json_object_get(spec, "metadata");
	}
	json_object_set_new(metadata, MARK, json_string(HEARTH_VERSION));
	json_object_set_new(spec, "argv", wrapped);
	*ret_text = json_dumps(spec, JSON_INDENT(1));
	return *ret_text ? 0 : -ENOMEM;
}

static bool is_ours(const json_t *spec)
{
	return json_object_get(json_object_get(spec, "metadata"), MARK) != NULL;
}

static bool is_spec(const json_t *spec)
{
	const json_t *argv = json_object_get(spec, "argv");

	return json_array_size(argv) && json_is_string(json_array_get(argv, 0));
}

/* The kernelspec as it was before us, and as it is where that is ours; both freed by the caller. */
static int read_before(int folder, char **ret_text, size_t *ret_size, char **ret_ours)
{
	char *text;
	size_t size;
	int rc = read_file(folder, KERNELSPEC_NAME, &text, &size);
	json_t *spec = rc ? NULL : json_loadb(text, size, 0, NULL);

	if (rc)
		return rc;
	if (is_ours(spec)) {
		rc = read_file(folder, KERNELSPEC_BACKUP, ret_text, ret_size);
		*ret_ours = text;
	} else {
		*ret_text = text;
		*ret_size = size;
	}
	json_decref(spec);
	return rc;
}

int kernelspec_wrap(const char *folder, const char *hearth, const char *imports)
{
	char *text = NULL, *wrapped = NULL, *is = NULL;
	int fd = open_folder(folder), rc;
	json_t *spec = NULL;
	size_t size;

	if (fd < 0)
		return fd;
	rc = read_before(fd, &text, &size, &is);
	if (!rc) {
		spec = json_loadb(text, size, 0, NULL);
		rc = is_spec(spec) ? 0 : -EPROTO;
	}
	if (!rc)
		rc = make_wrapped(folder, hearth, imports, spec, &wrapped);
	if (!rc && is && !strcmp(is, wrapped))
		rc = KERNELSPEC_SAME;
	if (!rc && !is)
		rc = write_file(fd, KERNELSPEC_BACKUP, text, size);
	if (!rc)
		rc = write_file(fd, KERNELSPEC_NAME, wrapped, strlen(wrapped));
	json_decref(spec);
	free(wrapped);
	free(text);
	free(is);
	close(fd);
	return rc;
}

int kernelspec_unwrap(const char *folder)
{
	int fd = open_folder(folder), rc;
	json_t *spec = NULL;
	char *text = NULL;
	size_t size;

	if (fd < 0)
		return fd;
	if (faccessat(fd, KERNELSPEC_BACKUP, F_OK, 0) < 0) {
		close(fd);
		return KERNELSPEC_SAME;
	}
	rc = read_file(fd, KERNELSPEC_NAME, &text, &size);
	if (!rc)
		spec = json_loadb(text, size, 0, NULL);
	if (!rc && !is_ours(spec))
		rc = unlinkat(fd, KERNELSPEC_BACKUP, 0) < 0 ? -errno : 0;
	else
		rc = renameat(fd, KERNELSPEC_BACKUP, fd, KERNELSPEC_NAME) < 0 ? -errno : 0;
	json_decref(spec);
	free(text);
	close(fd);
	return rc;
}
