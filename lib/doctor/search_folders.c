/* The folders in which the loader looks for everybody: ld.so.conf's, or its cache, and the default
 * ones. Runs in the hearth tool, on files of the scene, which may say anything; never loops without
 * a bound. */
#include "doctor/search.h"

#include "base/array.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONF "/etc/ld.so.conf"
#define CONF_SIZE 65536
#define CACHE "/etc/ld.so.cache"
#define CACHE_SIZE (4u << 20) /* 30 times what a full desktop has */
#define MAX_FOLDERS 256
#define MAX_INCLUDES 8 /* depth */

static const char *const default_folders[] = {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
	"/lib64", "/usr/lib64", "/lib", "/usr/lib"};

void search_add_folder(struct search *search, const char *folder)
{
	char **folders;

	if (*folder != '/' || search->folder_count == MAX_FOLDERS)
		return;
	folders = array_resize(search->folders, search->folder_count + 1, sizeof(*folders));
	if (!folders)
		return;
	search->folders = folders;
	folders[search->folder_count] = strdup(folder);
	if (folders[search->folder_count])
		search->folder_count++;
}

static void read_conf(struct search *search, const char *path, int depth);

struct include {
	struct search *search;
	const char *suffix;
	char *names[MAX_FOLDERS];
	size_t count;
};

static int take_include(const char *name, void *context)
{
	struct include *include = context;
	size_t length = strlen(name), suffix = strlen(include->suffix);

	if (length >= suffix && !strcmp(name + length - suffix, include->suffix) &&
		include->count < MAX_FOLDERS) {
		include->names[include->count] = strdup(name);
		if (include->names[include->count])
			include->count++;
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "include /etc/ld.so.conf.d/ *.conf": one star in the last part, which is all that is in use. */
static void read_include(struct search *search, const char *pattern, int depth)
{
	struct include include = {.search = search};
	const char *slash = strrchr(pattern, '/'), *star = strchr(pattern, '*');
	char folder[PATH_MAX], path[2 * PATH_MAX];

	if (!slash || depth >= MAX_INCLUDES)
		return;
	if (!star) {
		read_conf(search, pattern, depth + 1);
		return;
	}
	snprintf(folder, sizeof(folder), "%s%.*s", *pattern == '/' ? "" : "/etc/",
		(int)(slash - pattern), pattern);
	include.suffix = star + 1;
	scene_list(search->scene, folder, take_include, &include);
	qsort(include.names, include.count, sizeof(include.names[0]), by_name);
	for (size_t i = 0; i < include.count; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, include.names[i]);
		read_conf(search, path, depth + 1);
		free(include.names[i]);
	}
}

static void read_conf(struct search *search, const char *path, int depth)
{
	char *text = malloc(CONF_SIZE), *rest = text, *line;

	if (text && scene_read(search->scene, path, text, CONF_SIZE) > 0) {
		while ((line = strsep(&rest, "\n"))) {
			line[strcspn(line, "#\r")] = 0;
			line += strspn(line, " \t");
			for (size_t end = strlen(line); end && strchr(" \t", line[end - 1]);)
				line[--end] = 0;
			if (!strncmp(line, "include", 7) && strchr(" \t", line[7]) && line[7])
				read_include(search, line + 8 + strspn(line + 8, " \t"), depth);
			else
				search_add_folder(search, line);
		}
	}
	free(text);
}

static void read_cache(struct search *search)
{
	char *cache = malloc(CACHE_SIZE);
	ssize_t size = cache ? scene_read(search->scene, CACHE, cache, CACHE_SIZE) : -ENOMEM;

	if (size <= 0) {
		free(cache);
		return;
	}
	search->cache = cache;
	search->cache_size = (size_t)size;
}

void search_read_folders(struct search *search)
{
	read_cache(search);
	if (!search->cache)
		read_conf(search, CONF, 0);
	for (size_t i = 0; i < sizeof(default_folders) / sizeof(default_folders[0]); i++)
		search_add_folder(search, default_folders[i]);
}
