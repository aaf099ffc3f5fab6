/* Access to the examined machine. Runs in the hearth tool; only reads. */
#include "doctor/scene.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_PATH "/bin:/usr/bin" /* execvp without PATH */

int scene_init(const char *root, struct scene *ret_scene)
{
	struct scene scene = {
		.root_fd = -1,
		.uid = getuid(),
		.euid = geteuid(),
		.gid = getgid(),
		.egid = getegid(),
		.has_no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
	};

	for (int id = 0; id < ENV_COUNT; id++)
		scene.env[id] = env_get((enum env_id)id);
	if (root && strcmp(root, "/")) {
		scene.root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (scene.root_fd < 0)
			return -errno;
	}
	*ret_scene = scene;
	return 0;
}

void scene_done(struct scene *scene)
{
	if (scene->root_fd >= 0)
		close(scene->root_fd);
	scene->root_fd = -1;
}

bool scene_is_machine(const struct scene *scene)
{
	return scene->root_fd < 0;
}

int scene_open(const struct scene *scene, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.resolve = RESOLVE_IN_ROOT,
	};
	long fd;

	/* O_NONBLOCK: a fifo in place of a file must not hold us up. */
	if (!(flags & O_PATH))
		how.flags |= O_NONBLOCK | O_NOCTTY;
	if (scene->root_fd < 0)
		fd = open(path, (int)how.flags);
	else
		fd = syscall(SYS_openat2, scene->root_fd, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

int scene_stat(const struct scene *scene, const char *path, struct stat *ret_stat)
{
	int fd = scene_open(scene, path, O_PATH), rc = 0;

	if (fd < 0)
		return fd;
	if (fstat(fd, ret_stat) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

bool scene_exists(const struct scene *scene, const char *path)
{
	struct stat ignored;

	return !scene_stat(scene, path, &ignored);
}

int scene_access(const struct scene *scene, const char *path, int mode)
{
	char link[32]; /* /proc/self/fd/ and a number */
	int fd = scene_open(scene, path, O_PATH), rc = 0;

	if (fd < 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (faccessat(AT_FDCWD, link, mode, AT_EACCESS) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

static bool is_program(const struct scene *scene, const char *path)
{
	struct stat file;

	return !scene_stat(scene, path, &file) && S_ISREG(file.st_mode) &&
	       !scene_access(scene, path, X_OK);
}

bool scene_find_program(const struct scene *scene, const char *name, char ret_path[PATH_MAX])
{
	const char *list = scene->env[ENV_PATH];

	if (!*name)
		return false;
	if (strchr(name, '/'))
		return snprintf(ret_path, PATH_MAX, "%s", name) < PATH_MAX &&
		       is_program(scene, name);
	if (!list)
		list = DEFAULT_PATH;
	for (;;) {
		int length = (int)strcspn(list, ":");

		if (snprintf(ret_path, PATH_MAX, "%.*s/%s", length ? length : 1,
			    length ? list : ".", name) < PATH_MAX &&
			is_program(scene, ret_path))
			return true;
		if (!list[length])
			return false;
		list += length + 1;
	}
}

ssize_t scene_read(const struct scene *scene, const char *path, char *ret_text, size_t size)
{
	int fd = scene_open(scene, path, O_RDONLY);
	size_t have = 0;
	ssize_t rc = 0;

	if (fd < 0)
		return fd;
	while (have < size - 1) {
		ssize_t got = read(fd, ret_text + have, size - 1 - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			rc = -errno;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	close(fd);
	ret_text[have] = 0;
	return rc ? rc : (ssize_t)have;
}

int scene_list(const struct scene *scene, const char *path,
	int (*visit)(const char *name, void *context), void *context)
{
	int fd = scene_open(scene, path, O_RDONLY | O_DIRECTORY), rc = 0;
	struct dirent *entry;
	DIR *folder;

	if (fd < 0)
		return fd;
	folder = fdopendir(fd);
	if (!folder) {
		rc = -errno;
		close(fd);
		return rc;
	}
	while (!rc && (entry = readdir(folder))) {
		if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
			rc = visit(entry->d_name, context);
	}
	closedir(folder);
	return rc;
}
