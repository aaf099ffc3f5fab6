/* Wrapping Jupyter's kernelspecs. Runs in `hearth jupyter`. Must leave either the old file or the
 * new one, whatever ends it, and never lose what was there. */
#include "launch/kernelspec.h"

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
 * `hearth run` it would not. So name the one that the kernelspec came with, or Jupyter's. */
static json_t *first_word(const char *folder, const json_t *word)
{
	static const char inside[] = "/share/jupyter/kernels/";
	const char *text = json_string_value(word), *end = strstr(folder, inside);
	char prefix[PATH_MAX], path[2 * PATH_MAX];

	if (strncmp(text, "python", strlen("python")) || strchr(text, '/'))
		return json_string(text);
	if (end) {
		snprintf(path, sizeof(path), "%.*s/bin/%s", (int)(end - folder), folder, text);
		if (!access(path, X_OK))
			return json_string(path);
	}
	if (kernelspec_jupyter_prefix(prefix)) {
		snprintf(path, sizeof(path), "%s/bin/%s", prefix, text);
		if (!access(path, X_OK))
			return json_string(path);
	}
	return json_string(text);
}

/* What we put before a kernel's own words. */
static json_t *words_before(const char *hearth, const char *imports)
{
	return imports ? json_pack(
				 "[s,s,s,s,s,s]", hearth, "run", "--spare", "--keep", imports, "--")
		       : json_pack("[s,s,s]", hearth, "run", "--");
}

static bool is_word(const json_t *argv, size_t at, const char *word)
{
	const char *text = json_string_value(json_array_get(argv, at));

	return text && !strcmp(text, word);
}

/* How many words of an argv are those; 0 where it is somebody else's. */
static size_t count_before(const json_t *argv)
{
	size_t count = 0;

	if (is_word(argv, 1, "run") && is_word(argv, 2, "--"))
		count = 3;
	else if (is_word(argv, 1, "run") && is_word(argv, 2, "--spare") &&
		 is_word(argv, 3, "--keep") && is_word(argv, 5, "--"))
		count = 6;
	return json_array_size(argv) > count ? count : 0;
}

static bool is_ours(const json_t *spec)
{
	return json_is_string(json_object_get(json_object_get(spec, "metadata"), MARK));
}

static bool is_spec(const json_t *spec)
{
	const json_t *argv = json_object_get(spec, "argv");

	return json_array_size(argv) && json_is_string(json_array_get(argv, 0));
}

static int write_json(int folder, const json_t *spec)
{
	char *text = json_dumps(spec, JSON_INDENT(1));
	int rc = text ? write_file(folder, KERNELSPEC_NAME, text, strlen(text)) : -ENOMEM;

	free(text);
	return rc;
}

/* The file itself, with its times, its mode and what it may be a link to; else a copy. */
static int keep(int folder, const char *text, size_t size)
{
	if (unlinkat(folder, KERNELSPEC_BACKUP, 0) < 0 && errno != ENOENT)
		return -errno;
	if (!linkat(folder, KERNELSPEC_NAME, folder, KERNELSPEC_BACKUP, 0))
		return 0;
	return write_file(folder, KERNELSPEC_BACKUP, text, size);
}

static int read_spec(int folder, const char *name, char **ret_text, size_t *ret_size, json_t **ret)
{
	int rc = read_file(folder, name, ret_text, ret_size);

	*ret = rc ? NULL : json_loadb(*ret_text, *ret_size, 0, NULL);
	return rc;
}

/* The same kernelspec, wrapped, or wrapped anew: a new reference. */
static json_t *make_wrapped(
	const char *folder, const char *hearth, const char *imports, const json_t *spec)
{
	json_t *wrapped = json_deep_copy(spec), *argv = words_before(hearth, imports), *metadata;
	const json_t *before = json_object_get(spec, "argv"), *word;
	size_t ours = is_ours(spec) ? count_before(before) : 0;

	for (size_t i = ours; i < json_array_size(before); i++) {
		word = json_array_get(before, i);
		json_array_append_new(argv, i || !json_is_string(word) ? json_deep_copy(word)
								       : first_word(folder, word));
	}
	metadata = json_object_get(wrapped, "metadata");
	if (!json_is_object(metadata)) {
		json_object_set_new(wrapped, "metadata", json_object());
		metadata = json_object_get(wrapped, "metadata");
	}
	json_object_set_new(metadata, MARK, json_string(HEARTH_VERSION));
	json_object_set_new(wrapped, "argv", argv);
	return wrapped;
}

int kernelspec_wrap(const char *folder, const char *hearth, const char *imports)
{
	json_t *spec = NULL, *wrapped = NULL;
	int fd = open_folder(folder), rc;
	bool keeps = false;
	char *text = NULL;
	size_t size;

	if (fd < 0)
		return fd;
	rc = read_spec(fd, KERNELSPEC_NAME, &text, &size, &spec);
	if (!rc && !is_spec(spec))
		rc = -EPROTO;
	if (!rc) {
		wrapped = make_wrapped(folder, hearth, imports, spec);
		rc = json_equal(wrapped, spec) ? KERNELSPEC_SAME : 0;
		/* Where it is ours, what was before is kept already. */
		keeps = !is_ours(spec);
	}
	if (!rc && keeps)
		rc = keep(fd, text, size);
	if (!rc) {
		rc = write_json(fd, wrapped);
		if (rc && keeps)
			unlinkat(fd, KERNELSPEC_BACKUP, 0);
	}
	json_decref(wrapped);
	json_decref(spec);
	free(text);
	close(fd);
	return rc;
}

/* Is `word` what first_word may have made of the one that was kept? */
static bool is_same_word(const json_t *kept, const json_t *word)
{
	const char *before = json_string_value(kept), *now = json_string_value(word), *slash;

	if (!before || !now)
		return false;
	slash = strchr(before, '/') ? NULL : strrchr(now, '/');
	return !strcmp(before, slash ? slash + 1 : now);
}

/* Takes out what we have put in. `kept` is what was there before, or NULL. */
static void take_out(json_t *spec, const json_t *kept)
{
	json_t *argv = json_object_get(spec, "argv"), *metadata = json_object_get(spec, "metadata");
	json_t *word = json_array_get(json_object_get(kept, "argv"), 0);
	json_t *before = json_object_get(kept, "metadata");

	for (size_t i = count_before(argv); i > 0; i--)
		json_array_remove(argv, 0);
	if (is_same_word(word, json_array_get(argv, 0)))
		json_array_set(argv, 0, word);
	if (json_object_get(before, MARK))
		json_object_set(metadata, MARK, json_object_get(before, MARK));
	else
		json_object_del(metadata, MARK);
	if (json_object_size(metadata) || !kept)
		return;
	if (!before)
		json_object_del(spec, "metadata");
	else if (!json_is_object(before))
		json_object_set(spec, "metadata", before);
}

static int unwrap(int fd, json_t *spec, const json_t *kept)
{
	take_out(spec, kept);
	if (kept && json_equal(spec, kept))
		return renameat(fd, KERNELSPEC_BACKUP, fd, KERNELSPEC_NAME) < 0 ? -errno : 0;
	return write_json(fd, spec) ?: KERNELSPEC_EDITED;
}

int kernelspec_unwrap(const char *folder)
{
	json_t *spec = NULL, *kept = NULL;
	int fd = open_folder(folder), rc;
	char *text = NULL, *kept_text = NULL;
	bool has_kept;
	size_t size;

	if (fd < 0)
		return fd;
	has_kept = !read_spec(fd, KERNELSPEC_BACKUP, &kept_text, &size, &kept);
	rc = read_spec(fd, KERNELSPEC_NAME, &text, &size, &spec);
	if (!rc && is_ours(spec))
		rc = unwrap(fd, spec, kept);
	else if (!rc || (rc == -ENOENT && has_kept))
		rc = has_kept ? 0 : KERNELSPEC_SAME;
	if (rc >= 0 && has_kept && unlinkat(fd, KERNELSPEC_BACKUP, 0) < 0 && errno != ENOENT)
		rc = -errno;
	json_decref(kept);
	json_decref(spec);
	free(kept_text);
	free(text);
	close(fd);
	return rc;
}
