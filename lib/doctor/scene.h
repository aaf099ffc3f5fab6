/* Where doctor looks: a root folder, an environment, and who asks. Everything that examines the
 * machine takes a scene, so that an unpacked image or a test's tree can stand for the machine. */
#pragma once

#include "base/env.h"

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct scene {
	int root_fd;                /* O_PATH; -1: the machine's own root */
	const char *env[ENV_COUNT]; /* NULL: unset. Not owned. */
	uid_t uid, euid;
	gid_t gid, egid;
	bool has_no_new_privs;  /* setuid bits and capabilities have no effect */
	const char *library;    /* libhearth.so as `hearth run` would preload it, or NULL */
	const char *nvidia_smi; /* asked for the persistence mode, or NULL: don't ask */
};

/* This process's own environment and ids; root NULL or "/" is the machine's. Returns 0 or a
 * negative errno. library and nvidia_smi are left NULL. */
int scene_init(const char *root, struct scene *ret_scene);
void scene_done(struct scene *scene);
bool scene_is_machine(const struct scene *scene);

/* open, stat, access by effective ids, and readlink; links are followed inside the root. Paths are
 * absolute; a relative one is taken from the current folder, or in another root from that root. */
int scene_open(const struct scene *scene, const char *path, int flags);
int scene_stat(const struct scene *scene, const char *path, struct stat *ret_stat);
bool scene_exists(const struct scene *scene, const char *path);
int scene_access(const struct scene *scene, const char *path, int mode);

/* The program that execvp(3) takes for a name: with a slash as it is, else the first in the scene's
 * PATH. Returns whether there is one. */
bool scene_find_program(const struct scene *scene, const char *name, char ret_path[PATH_MAX]);

/* Reads at most size - 1 bytes and puts a NUL behind them. Returns their number or -errno. */
ssize_t scene_read(const struct scene *scene, const char *path, char *ret_text, size_t size);

/* Calls visit for each entry of a folder but . and .. until it returns something else than 0, which
 * is then returned. -errno where the folder can't be read. */
int scene_list(const struct scene *scene, const char *path,
	int (*visit)(const char *name, void *context), void *context);
