/* The surroundings of CUDA programs. Runs in the hearth tool; only reads. */
#include "doctor/surroundings.h"

#include "doctor/machine.h"
#include "report/causes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CGROUP_SIZE 4096
#define MPS_DEFAULT "/tmp/nvidia-mps" /* the MPS manual's default for CUDA_MPS_PIPE_DIRECTORY */

const char *surroundings_container(const struct scene *scene)
{
	static const struct {
		const char *word, *name;
	} words[] = {{"kubepods", "kubernetes"}, {"docker", "docker"}, {"libpod", "podman"},
		{"containerd", "containerd"}, {"lxc", "lxc"}};
	char text[CGROUP_SIZE];

	if (scene_exists(scene, "/var/run/secrets/kubernetes.io"))
		return "kubernetes";
	if (scene_exists(scene, "/.dockerenv"))
		return "docker";
	if (scene_exists(scene, "/run/.containerenv"))
		return "podman";
	if (scene_exists(scene, "/.singularity.d"))
		return "singularity";
	if (scene_read(scene, "/proc/1/cgroup", text, sizeof(text)) <= 0)
		return NULL;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i].word))
			return words[i].name;
	return NULL;
}

static void examine_container(const struct scene *scene, struct findings *findings)
{
	const char *container = surroundings_container(scene);
	const char *devices = scene->env[ENV_NVIDIA_VISIBLE_DEVICES];
	const char *capabilities = scene->env[ENV_NVIDIA_DRIVER_CAPABILITIES];

	if (!container)
		return;
	if (devices && (!strcmp(devices, "void") || !strcmp(devices, "none"))) {
		findings_add(findings, "container", SEVERITY_WARNING,
			"%s, with NVIDIA_VISIBLE_DEVICES=%s: no GPU is handed in", container,
			devices);
		findings_remedy(
			findings, "start it with `--gpus all`, or NVIDIA_VISIBLE_DEVICES=all");
	} else if (capabilities && !strstr(capabilities, "compute") &&
		   !strstr(capabilities, "all")) {
		findings_add(findings, "container", SEVERITY_PROBLEM,
			"%s, with NVIDIA_DRIVER_CAPABILITIES=%s: libcuda is not handed in",
			container, capabilities);
		findings_remedy(findings, "NVIDIA_DRIVER_CAPABILITIES=compute,utility");
	} else if (machine_find_driver(scene, NULL) != MACHINE_DRIVER) {
		findings_add(findings, "container", SEVERITY_WARNING,
			"%s, and no GPU was handed in%s", container,
			devices ? "" : "; NVIDIA_VISIBLE_DEVICES is unset");
		findings_remedy(findings, "start it with `--gpus all`, or the NVIDIA runtime");
	} else {
		findings_add(findings, "container", SEVERITY_OK, "%s", container);
	}
}

static bool is_overlay(const struct scene *scene, const char *path)
{
	int fd = scene_open(scene, path, O_PATH);
	struct statfs about;
	bool yes;

	if (fd < 0)
		return false;
	yes = !fstatfs(fd, &about) && about.f_type == OVERLAYFS_SUPER_MAGIC;
	close(fd);
	return yes;
}

static int ask_access(const void *context, const char *path, int mode)
{
	return scene_access(context, path, mode);
}

static void examine_cache(const struct scene *scene, struct findings *findings)
{
	const struct jit_cache_view view = {
		.disabled = scene->env[ENV_CUDA_CACHE_DISABLE],
		.path = scene->env[ENV_CUDA_CACHE_PATH],
		.home = scene->env[ENV_HOME],
		.access = ask_access,
		.context = scene,
	};
	struct jit_cache_place place;
	enum jit_cache cache = jit_cache_look(&view, &place);

	causes_add_cache(findings, cache, &place);
	if (cache != JIT_CACHE_GOOD)
		return;
	if (surroundings_container(scene) && is_overlay(scene, place.folder)) {
		findings_add(findings, "jit-cache", SEVERITY_NOTE,
			"%s is lost with the container: each new one compiles its PTX again",
			place.path);
		findings_remedy(findings, "mount a volume there, or set CUDA_CACHE_PATH to one");
	} else {
		findings_add(findings, "jit-cache", SEVERITY_OK, "%s", place.path);
	}
}

static void examine_mps(const struct scene *scene, struct findings *findings)
{
	const char *told = scene->env[ENV_CUDA_MPS_PIPE_DIRECTORY];
	char control[PATH_MAX];

	snprintf(control, sizeof(control), "%s/control", told ? told : MPS_DEFAULT);
	if (scene_exists(scene, control)) {
		findings_add(findings, "mps", SEVERITY_NOTE,
			"MPS control pipe %s: programs become clients of the MPS server, which "
			"itself "
			"keeps the GPU warm",
			control);
		findings_remedy(findings, "Hearth records as ever; to run without MPS set "
					  "CUDA_MPS_PIPE_DIRECTORY to an empty folder");
	} else if (told) {
		findings_add(findings, "mps", SEVERITY_NOTE,
			"CUDA_MPS_PIPE_DIRECTORY=%s, but there is no %s: programs run without MPS",
			told, control);
	}
}

static void examine_tools(const struct scene *scene, struct findings *findings)
{
	static const enum env_id ids[] = {ENV_CUDA_INJECTION64_PATH, ENV_NVTX_INJECTION64_PATH};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		const char *path = scene->env[ids[i]], *name = env_info(ids[i])->name;

		if (!path)
			continue;
		if (strchr(path, '/') && !scene_exists(scene, path))
			findings_add(findings, "injection", SEVERITY_WARNING, "%s=%s: no such file",
				name, path);
		else
			findings_add(findings, "injection", SEVERITY_WARNING,
				"%s=%s: with a tool inside, calls are passed through and recorded, "
				"no "
				"more",
				name, path);
		findings_remedy(findings, "unset %s, unless the tool is wanted", name);
	}
}

static void examine_devices(const struct scene *scene, struct findings *findings)
{
	const char *visible = scene->env[ENV_CUDA_VISIBLE_DEVICES];

	if (!visible || (strcmp(visible, "-1") && strcmp(visible, "NoDevFiles")))
		return;
	findings_add(findings, "visible-devices", SEVERITY_WARNING,
		"CUDA_VISIBLE_DEVICES=%s hides every GPU: cuInit fails with 100", visible);
	findings_remedy(findings, "unset CUDA_VISIBLE_DEVICES");
}

/* The folder part of a log's path; %p and %h are seldom there. */
static void examine_log(const struct scene *scene, struct findings *findings)
{
	const char *log = scene->env[ENV_HEARTH_LOG], *slash;
	char folder[PATH_MAX] = ".";
	int rc;

	if (!log)
		return;
	slash = strrchr(log, '/');
	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - log + 1), log);
	if (strchr(folder, '%'))
		return;
	/* A file that is there needs no folder that can be written. */
	rc = scene_exists(scene, log) ? scene_access(scene, log, W_OK)
				      : scene_access(scene, folder, W_OK | X_OK);
	if (!rc)
		return;
	findings_add(findings, "log", SEVERITY_WARNING, "HEARTH_LOG=%s can't be written: %s", log,
		strerror(-rc));
	findings_remedy(findings, "make its folder, or name another one");
}

void surroundings_examine(const struct scene *scene, struct findings *findings)
{
	examine_container(scene, findings);
	examine_cache(scene, findings);
	examine_mps(scene, findings);
	examine_devices(scene, findings);
	examine_log(scene, findings);
	examine_tools(scene, findings);
}
