/* What of the GPU side stands in a program's way. Runs in the hearth tool; opens no device: opening
 * /dev/nvidia0 alone would wake a GPU without persistence mode. */
#include "doctor/machine.h"

#include "doctor/inquire.h"
#include "doctor/search.h"
#include "driver/locate.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VERSION_SIZE 32
#define TEXT_SIZE 4096
#define SMI_TIMEOUT_MS 5000
#define MODES_SIZE 512

static bool has_sign(const struct scene *scene)
{
	for (size_t i = 0; locate_sign(i); i++)
		if (scene_exists(scene, locate_sign(i)))
			return true;
	return false;
}

enum machine_driver machine_find_driver(const struct scene *scene, char **ret_path)
{
	const char *told = scene->env[ENV_HEARTH_DRIVER];
	char *path = NULL;
	bool is_there = true;

	if (told && search_is_driver(scene, told))
		path = strdup(told);
	else if (has_sign(scene))
		search_find_driver(scene, scene->env[ENV_LD_LIBRARY_PATH], &path);
	else
		is_there = false;
	if (ret_path)
		*ret_path = path;
	else
		free(path);
	return path ? MACHINE_DRIVER : is_there ? MACHINE_NO_FILE : MACHINE_NO_SIGN;
}

const char *machine_special(const struct scene *scene)
{
	if (scene_exists(scene, "/dev/dxg"))
		return "WSL2";
	if (scene_exists(scene, "/dev/nvmap") || scene_exists(scene, "/dev/nvhost-ctrl"))
		return "Jetson";
	return NULL;
}

/* "580.159.04" after the word Module in /proc/driver/nvidia/version's first line. */
static bool module_version(const struct scene *scene, char ret_version[VERSION_SIZE])
{
	char text[TEXT_SIZE], *at;

	if (scene_read(scene, "/proc/driver/nvidia/version", text, sizeof(text)) <= 0)
		return false;
	text[strcspn(text, "\n")] = 0;
	at = strstr(text, "Module");
	for (char *word = at ? strtok_r(at, " \t", &at) : NULL; word;
		word = strtok_r(NULL, " \t", &at)) {
		if (isdigit((unsigned char)*word) && strchr(word, '.')) {
			snprintf(ret_version, VERSION_SIZE, "%.*s", VERSION_SIZE - 1, word);
			return true;
		}
	}
	return false;
}

/* The version in the file name that the driver's link leads to: libcuda.so.580.159.04. */
static bool file_version(
	const struct scene *scene, const char *path, char ret_version[VERSION_SIZE])
{
	char link[32], target[PATH_MAX]; /* /proc/self/fd/ and a number */
	int fd = scene_open(scene, path, O_PATH);
	const char *at;
	ssize_t length;

	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, target, sizeof(target) - 1);
	close(fd);
	if (length <= 0)
		return false;
	target[length] = 0;
	at = strstr(target, "libcuda.so.");
	at = at ? at + strlen("libcuda.so.") : "";
	if (!strchr(at, '.') || strspn(at, "0123456789.") != strlen(at))
		return false;
	snprintf(ret_version, VERSION_SIZE, "%.*s", VERSION_SIZE - 1, at);
	return true;
}

static void say_no_driver(enum machine_driver what, struct findings *findings)
{
	if (what == MACHINE_NO_FILE) {
		findings_add(findings, "driver", SEVERITY_PROBLEM,
			"the kernel module is there, but no libcuda.so.1 is found: libhearth.so "
			"steps aside");
		findings_remedy(findings, "install the driver's user-space part; in a container "
					  "NVIDIA_DRIVER_CAPABILITIES must hold compute");
	} else {
		findings_add(findings, "no-gpu", SEVERITY_PROBLEM,
			"no sign of an NVIDIA driver: libhearth.so steps aside");
		findings_remedy(findings, "load the kernel module; start a container with "
					  "`--gpus all` or the NVIDIA runtime");
	}
}

static void examine_driver(const struct scene *scene, struct findings *findings)
{
	char module[VERSION_SIZE] = "", file[VERSION_SIZE] = "", *path;
	const char *told = scene->env[ENV_HEARTH_DRIVER];
	enum machine_driver what = machine_find_driver(scene, &path);

	if (told && !search_is_driver(scene, told)) {
		findings_add(findings, "driver-setting", SEVERITY_PROBLEM,
			"HEARTH_DRIVER=%s is no driver: an x86-64 library, and not Hearth's", told);
		findings_remedy(findings, "unset HEARTH_DRIVER, or name a libcuda.so.1");
		told = NULL;
	}
	if (what != MACHINE_DRIVER) {
		say_no_driver(what, findings);
		return;
	}
	module_version(scene, module);
	file_version(scene, path, file);
	if (strstr(path, "/stubs/")) {
		findings_add(findings, "driver", SEVERITY_PROBLEM,
			"%s is a stub for linking, and comes first: cuInit fails with 34", path);
		findings_remedy(findings, "take its folder out of LD_LIBRARY_PATH and ld.so.conf");
	} else if (told) {
		findings_add(findings, "driver", SEVERITY_NOTE, "%s, because HEARTH_DRIVER says so",
			path);
	} else if (*module && *file && strcmp(module, file) && !strstr(path, "compat")) {
		findings_add(findings, "driver", SEVERITY_PROBLEM,
			"kernel module %s, but %s is %s: cuInit fails with 803", module, path,
			file);
		findings_remedy(findings, "after an upgrade reload the kernel module or reboot, "
					  "and restart containers");
	} else {
		findings_add(findings, "driver", SEVERITY_OK, "%s, %s",
			*module ? module
			: *file ? file
				: "version not known",
			path);
	}
	free(path);
}

struct node_count {
	const struct scene *scene;
	struct findings *findings;
	unsigned good;
	bool is_bad;
};

static void examine_node(struct node_count *nodes, const char *path)
{
	int rc = scene_access(nodes->scene, path, R_OK | W_OK);

	if (!rc) {
		nodes->good++;
		return;
	}
	nodes->is_bad = true;
	findings_add(
		nodes->findings, "device-nodes", SEVERITY_PROBLEM, "%s: %s", path, strerror(-rc));
	if (rc == -ENOENT)
		findings_remedy(nodes->findings,
			"`nvidia-modprobe -u -c 0` makes it; in a container use `--gpus all`");
	else
		findings_remedy(nodes->findings,
			"its mode and owner come from the module's NVreg_DeviceFileMode and udev; "
			"join the group that owns it");
}

static int examine_gpu_node(const char *name, void *context)
{
	struct node_count *nodes = context;
	char path[PATH_MAX];

	if (!strncmp(name, "nvidia", 6) && isdigit((unsigned char)name[6])) {
		snprintf(path, sizeof(path), "/dev/%s", name);
		examine_node(nodes, path);
	}
	return 0;
}

static void examine_nodes(const struct scene *scene, struct findings *findings)
{
	struct node_count nodes = {.scene = scene, .findings = findings};

	if (!scene_exists(scene, "/dev/nvidiactl") && !scene_exists(scene, "/proc/driver/nvidia"))
		return;
	examine_node(&nodes, "/dev/nvidiactl");
	examine_node(&nodes, "/dev/nvidia-uvm");
	nodes.good = 0; /* from here on GPUs are counted */
	scene_list(scene, "/dev", examine_gpu_node, &nodes);
	if (!nodes.good && !nodes.is_bad) {
		findings_add(findings, "device-nodes", SEVERITY_PROBLEM,
			"no /dev/nvidia0 or other GPU: cuInit will find no device");
		findings_remedy(
			findings, "in a container: `--gpus all`, or NVIDIA_VISIBLE_DEVICES");
	} else if (!nodes.is_bad) {
		findings_add(findings, "device-nodes", SEVERITY_OK,
			"control, UVM and %u GPU node%s readable and writable", nodes.good,
			nodes.good == 1 ? "" : "s");
	}
}

struct modes {
	char on[MODES_SIZE], off[MODES_SIZE]; /* " 0, 1": GPUs with persistence mode, and without */
};

static void list_gpu(char list[MODES_SIZE], const char *gpu)
{
	size_t length = strlen(list);

	snprintf(list + length, MODES_SIZE - length, "%s %s", length ? "," : "", gpu);
}

/* "0, Enabled, Default" for each GPU. */
static void examine_mode(char *line, struct modes *modes, struct findings *findings)
{
	char *gpu = strsep(&line, ","), *persistence = strsep(&line, ","),
	     *compute = strsep(&line, ",");

	if (!gpu || !persistence || !compute)
		return;
	persistence += strspn(persistence, " ");
	compute += strspn(compute, " ");
	list_gpu(strcmp(persistence, "Enabled") ? modes->off : modes->on, gpu);
	if (!strncmp(compute, "Exclusive", 9) || !strcmp(compute, "Prohibited")) {
		findings_add(findings, "compute-mode", SEVERITY_WARNING,
			"GPU %s is in mode %s: hearthd keeps none of it warm", gpu, compute);
		findings_remedy(findings, "as root: nvidia-smi -i %s -c DEFAULT", gpu);
	}
}

static void say_persistence(const struct modes *modes, struct findings *findings)
{
	if (*modes->on)
		findings_add(findings, "persistence", SEVERITY_OK, "on for GPU%s", modes->on);
	if (!*modes->off)
		return;
	findings_add(findings, "persistence", SEVERITY_WARNING,
		"persistence mode is off for GPU%s: the driver forgets it when its last user "
		"leaves; hearthd's keeper holds it meanwhile",
		modes->off);
	findings_remedy(findings, "as root: nvidia-smi -pm 1, or run nvidia-persistenced");
}

void machine_ask_modes(const char *nvidia_smi, struct findings *findings)
{
	char text[TEXT_SIZE], *rest = text, *line;
	struct modes modes = {0};
	const char *command[] = {nvidia_smi, "--query-gpu=index,persistence_mode,compute_mode",
		"--format=csv,noheader", NULL};
	int rc = inquire(command, SMI_TIMEOUT_MS, text, sizeof(text));

	if (rc) {
		findings_add(findings, "persistence", SEVERITY_NOTE, "not known: %s %s", nvidia_smi,
			rc == -ETIME ? "gave no answer within 5 s"
			: rc > 0     ? "failed"
				     : strerror(-rc));
		return;
	}
	while ((line = strsep(&rest, "\n")))
		examine_mode(line, &modes, findings);
	say_persistence(&modes, findings);
}

static void examine_persistence(const struct scene *scene, struct findings *findings)
{
	if (!scene_exists(scene, "/proc/driver/nvidia/version"))
		return;
	if (scene->nvidia_smi)
		machine_ask_modes(scene->nvidia_smi, findings);
	else if (scene_exists(scene, "/run/nvidia-persistenced/socket"))
		findings_add(
			findings, "persistence", SEVERITY_OK, "nvidia-persistenced is running");
	else
		findings_add(findings, "persistence", SEVERITY_NOTE,
			"not known: there is no nvidia-smi to ask");
}

void machine_examine(const struct scene *scene, struct findings *findings)
{
	const char *special = machine_special(scene);

	examine_driver(scene, findings);
	if (special) {
		findings_add(findings, "platform", SEVERITY_WARNING,
			"%s: calls are passed through and recorded, nothing is kept warm or done "
			"ahead",
			special);
		return;
	}
	examine_nodes(scene, findings);
	examine_persistence(scene, findings);
}
