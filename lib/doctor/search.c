/* The loader's search, on paper. Runs in the hearth tool; reads files of the scene and nothing of
 * this process's own loader, so that it can speak for another program and another root. */
#include "doctor/search.h"

#include "driver/ld_cache.h"
#include "driver/locate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ALIAS "libhearth-alias.so"

/* Whether this is an x86-64 library or program: glibc goes on past files of another class or
 * machine. */
static bool is_native(const struct scene *scene, const char *path, bool *ret_is_hearth)
{
	struct elf_facts facts;
	int fd = scene_open(scene, path, O_RDONLY), rc;
	bool is_native;

	if (fd < 0)
		return false;
	rc = elf_read(fd, &facts);
	close(fd);
	if (rc)
		return false;
	*ret_is_hearth = false;
	for (size_t i = 0; i < facts.needed_count; i++)
		*ret_is_hearth |= !strcmp(facts.needed[i], ALIAS);
	is_native = facts.is_native;
	elf_done(&facts);
	return is_native;
}

static bool is_loadable(const struct scene *scene, const char *path)
{
	bool is_hearth;

	return is_native(scene, path, &is_hearth);
}

bool search_is_driver(const struct scene *scene, const char *path)
{
	bool is_hearth;

	return is_native(scene, path, &is_hearth) && !is_hearth;
}

static int try_file(const struct scene *scene, const char *folder, size_t length, const char *name,
	char **ret_path)
{
	char *path;

	if (asprintf(&path, "%.*s/%s", length ? (int)length : 1, length ? folder : ".", name) < 0)
		return -ENOMEM;
	if (is_loadable(scene, path)) {
		*ret_path = path;
		return 0;
	}
	free(path);
	return -ENOENT;
}

/* Replaces $ORIGIN and $LIB, braced or not. Returns false where the text doesn't fit. */
static bool expand(const char *text, size_t length, const char *asker, char ret_folder[PATH_MAX])
{
	const char *slash = asker ? strrchr(asker, '/') : NULL, *end = text + length;
	size_t used = 0;

	while (text < end) {
		const char *value = NULL;
		size_t value_length = 1, skip = 1;

		if (!strncmp(text, "$ORIGIN", 7) || !strncmp(text, "${ORIGIN}", 9)) {
			skip = text[1] == '{' ? 9 : 7;
			value = slash ? asker : ".";
			value_length = slash ? (size_t)(slash - asker) : 1;
		} else if (!strncmp(text, "$LIB", 4) || !strncmp(text, "${LIB}", 6)) {
			skip = text[1] == '{' ? 6 : 4;
			value = "lib/x86_64-linux-gnu";
			value_length = strlen(value);
		}
		if (used + value_length >= PATH_MAX)
			return false;
		memcpy(ret_folder + used, value ? value : text, value_length);
		used += value_length;
		text += skip;
	}
	ret_folder[used] = 0;
	return true;
}

static int try_list(const struct scene *scene, const char *list, const char *asker,
	const char *separators, const char *name, char **ret_path)
{
	char folder[PATH_MAX];
	int rc = -ENOENT;

	while (list && rc == -ENOENT) {
		size_t length = strcspn(list, separators);

		if (expand(list, length, asker, folder))
			rc = try_file(scene, folder, strlen(folder), name, ret_path);
		list = list[length] ? list + length + 1 : NULL;
	}
	return rc;
}

/* DT_RPATH counts only where the asker has no DT_RUNPATH; then that of those who brought it too. */
static int try_rpaths(const struct search *search, int asker, const char *name, char **ret_path)
{
	int rc = -ENOENT;

	if (search->objects[asker].facts.runpath)
		return rc;
	for (int i = asker; i >= 0 && rc == -ENOENT; i = search->objects[i].parent)
		if (!search->objects[i].facts.runpath)
			rc = try_list(search->scene, search->objects[i].facts.rpath,
				search->objects[i].path, ":", name, ret_path);
	return rc;
}

static int try_runpath(const struct search *search, int asker, const char *name, char **ret_path)
{
	return try_list(search->scene, search->objects[asker].facts.runpath,
		search->objects[asker].path, ":", name, ret_path);
}

int search_find_own(const struct search *search, int asker, const char *name, char **ret_path)
{
	int rc = try_rpaths(search, asker, name, ret_path);

	return rc == -ENOENT ? try_runpath(search, asker, name, ret_path) : rc;
}

struct cache_match {
	const struct scene *scene;
	char *path;
};

static int take_match(const char *path, void *data)
{
	struct cache_match *match = data;

	if (!is_loadable(match->scene, path))
		return 1;
	match->path = strdup(path);
	return 0;
}

static int try_cache(const struct search *search, const char *name, char **ret_path)
{
	struct cache_match match = {.scene = search->scene};

	if (!search->cache ||
		ld_cache_find_in(search->cache, search->cache_size, name, take_match, &match))
		return -ENOENT;
	*ret_path = match.path;
	return match.path ? 0 : -ENOMEM;
}

int search_find(const struct search *search, int asker, const char *name, char **ret_path)
{
	const struct scene *scene = search->scene;
	int rc = -ENOENT;

	if (strchr(name, '/')) {
		if (!is_loadable(scene, name))
			return -ENOENT;
		*ret_path = strdup(name);
		return *ret_path ? 0 : -ENOMEM;
	}
	if (asker >= 0)
		rc = try_rpaths(search, asker, name, ret_path);
	if (rc == -ENOENT)
		rc = try_list(scene, search->library_path, NULL, ":;", name, ret_path);
	if (rc == -ENOENT && asker >= 0)
		rc = try_runpath(search, asker, name, ret_path);
	if (rc == -ENOENT)
		rc = try_cache(search, name, ret_path);
	for (size_t i = 0; i < search->folder_count && rc == -ENOENT; i++)
		rc = try_file(
			scene, search->folders[i], strlen(search->folders[i]), name, ret_path);
	return rc;
}

static bool has_name(const struct search *search, const char *name)
{
	for (size_t i = 0; i < search->count; i++) {
		const struct search_object *object = &search->objects[i];

		if (!strcmp(object->name, name) ||
			(object->facts.soname && !strcmp(object->facts.soname, name)))
			return true;
	}
	return false;
}

/* Reads the facts of a file of the scene; same returns as elf_read. */
static int read_facts(const struct scene *scene, const char *path, struct elf_facts *ret_facts)
{
	int fd = scene_open(scene, path, O_RDONLY), rc;

	if (fd < 0)
		return fd;
	rc = elf_read(fd, ret_facts);
	close(fd);
	return rc;
}

static int add_object(struct search *search, int parent, const char *name)
{
	struct search_object object = {.parent = parent, .name = strdup(name)};
	int rc;

	if (!object.name)
		return -ENOMEM;
	rc = search_find(search, parent, name, &object.path);
	if (!rc && read_facts(search->scene, object.path, &object.facts))
		object.facts = (struct elf_facts){0};
	if (rc == -ENOMEM) {
		free(object.name);
		return rc;
	}
	search->objects[search->count++] = object;
	return 0;
}

void search_prepare(const struct scene *scene, const char *library_path, struct search *ret)
{
	*ret = (struct search){.scene = scene, .library_path = library_path};
	search_read_folders(ret);
}

int search_walk(const struct scene *scene, const char *executable, const char *library_path,
	struct search *ret)
{
	int rc;

	search_prepare(scene, library_path, ret);
	ret->objects[0].parent = -1;
	ret->objects[0].name = strdup(executable);
	ret->objects[0].path = strdup(executable);
	ret->count = 1;
	if (!ret->objects[0].name || !ret->objects[0].path)
		return -ENOMEM;
	rc = read_facts(scene, executable, &ret->objects[0].facts);
	for (size_t i = 0; i < ret->count && !rc; i++)
		for (size_t n = 0; n < ret->objects[i].facts.needed_count && !rc; n++)
			if (ret->count < SEARCH_MAX_OBJECTS &&
				!has_name(ret, ret->objects[i].facts.needed[n]))
				rc = add_object(ret, (int)i, ret->objects[i].facts.needed[n]);
	return rc;
}

void search_done(struct search *search)
{
	for (size_t i = 0; i < search->count; i++) {
		free(search->objects[i].path);
		free(search->objects[i].name);
		elf_done(&search->objects[i].facts);
	}
	for (size_t i = 0; i < search->folder_count; i++)
		free(search->folders[i]);
	free(search->folders);
	free(search->cache);
	search->cache = NULL;
	search->count = search->folder_count = 0;
	search->folders = NULL;
}

int search_find_driver(const struct scene *scene, const char *library_path, char **ret_path)
{
	struct search *search = calloc(1, sizeof(*search));
	int rc;

	if (!search)
		return -ENOMEM;
	search_prepare(scene, library_path, search);
	for (size_t i = 0; locate_folder(i); i++)
		search_add_folder(search, locate_folder(i));
	rc = search_find(search, -1, LOCATE_NAME, ret_path);
	search_done(search);
	free(search);
	return rc;
}
