/* Reading sysfs and /proc, in hearthd and in `hearth run` before it starts one. Opens no device. */
#include "broker/machine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VENDOR_NVIDIA "0x10de"
#define CLASS_DISPLAY "0x03" /* VGA controllers, 3D controllers */
#define MODULE_VERSION "/proc/driver/nvidia/version"
#define UUID_LABEL "GPU UUID:"
#define MAX_ANCESTORS 64

/* A small file's text without the final line end; empty where it cannot be read. */
static void read_text(const char *path, char *ret_text, size_t size)
{
	ssize_t got = -1;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		got = read(fd, ret_text, size - 1);
		close(fd);
	}
	ret_text[got > 0 ? got : 0] = 0;
	if (got > 0 && ret_text[got - 1] == '\n')
		ret_text[got - 1] = 0;
}

static bool is_gpu(const char *folder, const char *name)
{
	char path[PATH_MAX], text[32];

	snprintf(path, sizeof(path), "%s/%s/vendor", folder, name);
	read_text(path, text, sizeof(text));
	if (strcmp(text, VENDOR_NVIDIA))
		return false;
	snprintf(path, sizeof(path), "%s/%s/class", folder, name);
	read_text(path, text, sizeof(text));
	return !strncmp(text, CLASS_DISPLAY, strlen(CLASS_DISPLAY));
}

static bool is_power_managed(const char *folder, const char *name)
{
	char path[PATH_MAX], text[16];

	snprintf(path, sizeof(path), "%s/%s/power/control", folder, name);
	read_text(path, text, sizeof(text));
	return !strcmp(text, "auto");
}

/* The GPU's UUID as CUDA_VISIBLE_DEVICES takes it ("GPU-..."). */
static bool find_uuid(const char *folder, const char *name, char *ret_uuid, size_t size)
{
	char path[PATH_MAX], text[2048], *at, *end;

	snprintf(path, sizeof(path), "%s/%s/information", folder, name);
	read_text(path, text, sizeof(text));
	at = strstr(text, UUID_LABEL);
	if (!at)
		return false;
	at += strlen(UUID_LABEL);
	at += strspn(at, " \t");
	end = at + strcspn(at, " \t\n");
	if (end == at || (size_t)(end - at) >= size)
		return false;
	memcpy(ret_uuid, at, (size_t)(end - at));
	ret_uuid[end - at] = 0;
	return true;
}

int machine_visible_devices(const char *pci_folder, const char *gpu_folder,
	bool keeps_power_managed, char *ret_value, size_t size)
{
	size_t used = 0, left_out = 0;
	struct dirent *entry;
	DIR *folder;

	ret_value[0] = 0;
	folder = keeps_power_managed ? NULL : opendir(pci_folder);
	if (!folder)
		return 0;
	while ((entry = readdir(folder))) {
		char uuid[64];

		if (entry->d_name[0] == '.' || !is_gpu(pci_folder, entry->d_name))
			continue;
		if (is_power_managed(pci_folder, entry->d_name)) {
			left_out++;
			continue;
		}
		if (!find_uuid(gpu_folder, entry->d_name, uuid, sizeof(uuid)) ||
			used + strlen(uuid) + 2 > size)
			continue;
		used += (size_t)snprintf(
			ret_value + used, size - used, "%s%s", used ? "," : "", uuid);
	}
	closedir(folder);
	if (left_out)
		return used ? 0 : MACHINE_NONE_LEFT;
	ret_value[0] = 0;
	return 0;
}

void machine_module_version(char *ret_text, size_t size)
{
	read_text(MODULE_VERSION, ret_text, size);
}

int machine_gpu_count(const char *gpu_folder)
{
	struct dirent *entry;
	DIR *folder = opendir(gpu_folder);
	int count = 0;

	if (!folder)
		return -1;
	while ((entry = readdir(folder)))
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

size_t machine_resident_bytes(pid_t pid)
{
	char path[64], text[128], *at;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	read_text(path, text, sizeof(text));
	at = strchr(text, ' ');
	return at ? (size_t)strtoull(at, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

/* "PID (name) state PPID ...", where the name may hold anything. */
static pid_t parent_of(pid_t pid, char *ret_name, size_t size)
{
	char path[64], text[512], *open_bracket, *close_bracket;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	read_text(path, text, sizeof(text));
	open_bracket = strchr(text, '(');
	close_bracket = strrchr(text, ')');
	if (!open_bracket || !close_bracket || close_bracket[1] != ' ' || !close_bracket[2])
		return 0;
	*close_bracket = 0;
	snprintf(ret_name, size, "%s", open_bracket + 1);
	return (pid_t)strtol(close_bracket + 3, NULL, 10);
}

pid_t machine_job_keeper(pid_t pid)
{
	for (int i = 0; pid > 1 && i < MAX_ANCESTORS; i++) {
		char name[32] = "";
		pid_t parent = parent_of(pid, name, sizeof(name));

		if (!strcmp(name, "slurmstepd") || !strcmp(name, "pbs_mom"))
			return pid;
		pid = parent;
	}
	return 0;
}
