/* Looking for other CUDA processes. Runs in `hearth compare`. Only reads links in /proc. */
#include "launch/others.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEVICE_NAME "/nvidia-uvm"

/* Walks the process's descriptors: with `wanted` until one leads there, else until one leads to
 * any memory manager device, whose path is then in ret_path. 1 found, 0 not, -errno. */
static int find_descriptor(pid_t pid, const char *wanted, char ret_path[PATH_MAX])
{
	char folder[32], target[PATH_MAX];
	struct dirent *entry;
	int found = 0;
	DIR *fds;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", (int)pid);
	fds = opendir(folder);
	if (!fds)
		return -errno;
	while (!found && (entry = readdir(fds))) {
		ssize_t length = readlinkat(dirfd(fds), entry->d_name, target, sizeof(target) - 1);
		size_t name = strlen(DEVICE_NAME);

		if (length <= 0)
			continue;
		target[length] = '\0';
		found = wanted ? !strcmp(target, wanted)
			       : (size_t)length > name &&
					 !strcmp(target + (size_t)length - name, DEVICE_NAME);
	}
	closedir(fds);
	if (found && ret_path)
		strcpy(ret_path, target);
	return found;
}

bool others_find_device(pid_t pid, char ret_path[PATH_MAX])
{
	return pid > 0 && find_descriptor(pid, NULL, ret_path) == 1;
}

static void read_name(pid_t pid, char *ret_name, size_t size)
{
	char path[32];
	ssize_t got = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		got = read(fd, ret_name, size - 1);
		close(fd);
	}
	ret_name[got > 0 ? got : 0] = '\0';
	ret_name[strcspn(ret_name, "\n")] = '\0';
}

void others_scan(const char *device, struct others *ret_others)
{
	struct others others = {0};
	DIR *proc = opendir("/proc");
	struct dirent *entry;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		int rc;

		if (pid <= 0 || pid == getpid())
			continue;
		rc = find_descriptor(pid, device, NULL);
		if (rc == -EACCES || rc == -EPERM)
			others.unreadable++;
		if (rc != 1)
			continue;
		if (others.count < OTHERS_MAX) {
			others.first[others.count].pid = pid;
			read_name(
				pid, others.first[others.count].name, sizeof(others.first[0].name));
		}
		others.count++;
	}
	if (proc)
		closedir(proc);
	*ret_others = others;
}
