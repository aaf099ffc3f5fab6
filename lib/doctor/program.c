/* Judging one executable. Runs in the hearth tool; never runs the file. */
#include "doctor/program.h"

#include "doctor/search.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define DRIVER_NAME "libcuda.so.1"
#define DRIVER_STEM "libcuda.so"
#define GLIBC_LOADER "ld-linux-x86-64.so.2"
#define CAPABILITIES "security.capability" /* capabilities(7) */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

bool program_is_secure(const struct scene *scene, const char *path, const char **ret_why)
{
	int fd = scene_open(scene, path, O_RDONLY);
	uid_t euid = scene->euid;
	gid_t egid = scene->egid;
	const char *why = NULL;
	struct statvfs about;
	struct stat file;
	bool may_gain;

	if (fd < 0)
		fd = scene_open(scene, path, O_PATH); /* executable, not readable */
	if (fd < 0)
		return false;
	may_gain = !scene->has_no_new_privs && !fstat(fd, &file) &&
		   (fstatvfs(fd, &about) || !(about.f_flag & ST_NOSUID));
	if (may_gain && file.st_mode & S_ISUID)
		euid = file.st_uid;
	if (may_gain && file.st_mode & S_ISGID && file.st_mode & S_IXGRP)
		egid = file.st_gid;
	/* Linux, security/commoncap.c: what counts is an effective id that is not the caller's real
	 * one, or capabilities gained by somebody else than root. */
	if (euid != scene->uid)
		why = "setuid";
	else if (egid != scene->gid)
		why = "setgid";
	else if (may_gain && scene->uid && fgetxattr(fd, CAPABILITIES, NULL, 0) > 0)
		why = "file-capabilities";
	close(fd);
	if (why)
		*ret_why = why;
	return why;
}

static bool judge_kind(const char *path, const struct elf_facts *facts, struct findings *findings)
{
	if (!facts->is_native) {
		bool is_narrow = facts->bits == 32 && facts->machine == EM_386;

		findings_add(findings, is_narrow ? "32-bit" : "foreign", SEVERITY_PROBLEM,
			is_narrow ? "%s is a 32-bit program: its loader prints a line about the "
				    "preload and goes on without it"
				  : "%s is not for x86-64",
			path);
		findings_remedy(findings, "use an x86-64 build of it");
		return false;
	}
	if (facts->type != ET_EXEC && facts->type != ET_DYN) {
		findings_add(findings, "not-executable", SEVERITY_PROBLEM,
			"%s is an ELF file, but no program", path);
		return false;
	}
	if (facts->is_static) {
		findings_add(findings, "static", SEVERITY_PROBLEM,
			"%s is linked statically: no loader runs, so nothing is preloaded", path);
		findings_remedy(findings, "link it dynamically (without -static)");
		return false;
	}
	return true;
}

static bool judge_interpreter(const struct scene *scene, const char *path,
	const struct elf_facts *facts, struct findings *findings)
{
	const char *loader = base_name(facts->interpreter);

	if (!strncmp(loader, "ld-musl", 7)) {
		findings_add(findings, "musl", SEVERITY_PROBLEM,
			"%s is a musl program (%s): the preload is for glibc, as the driver is",
			path, facts->interpreter);
		findings_remedy(findings, "use a glibc build or image (not Alpine)");
		return false;
	}
	if (strcmp(loader, GLIBC_LOADER)) {
		findings_add(findings, "interpreter", SEVERITY_PROBLEM,
			"%s is loaded by %s, which isn't glibc's loader", path, facts->interpreter);
		return false;
	}
	if (!scene_exists(scene, facts->interpreter)) {
		findings_add(findings, "interpreter", SEVERITY_PROBLEM,
			"%s asks for the loader %s, which doesn't exist: it can't start", path,
			facts->interpreter);
		return false;
	}
	return true;
}

static bool judge_asan(const struct scene *scene, const char *path, const struct elf_facts *facts,
	struct findings *findings)
{
	const char *options = scene->env[ENV_ASAN_OPTIONS];
	const char *runtime = NULL;

	for (size_t i = 0; i < facts->needed_count && !runtime; i++) {
		const char *name = base_name(facts->needed[i]);

		if (!strncmp(name, "libasan.so", 10) || !strncmp(name, "libclang_rt.asan", 16))
			runtime = name;
	}
	if (!runtime)
		return true;
	if (options && strstr(options, "verify_asan_link_order=0")) {
		findings_add(findings, "asan", SEVERITY_NOTE,
			"%s NEEDs %s; ASAN_OPTIONS lets a preload come before it", path, runtime);
		return true;
	}
	findings_add(findings, "asan", SEVERITY_PROBLEM,
		"%s NEEDs %s and aborts when anything is preloaded before it", path, runtime);
	findings_remedy(findings, "ASAN_OPTIONS=verify_asan_link_order=0");
	return false;
}

static bool is_driver(const char *name)
{
	return !strncmp(base_name(name), DRIVER_STEM, strlen(DRIVER_STEM));
}

/* The file is loaded whatever is preloaded, but symbols are looked up in the preload first. */
static void note_needed(const struct search_object *object, struct findings *findings)
{
	for (size_t i = 0; i < object->facts.needed_count; i++) {
		const char *name = object->facts.needed[i];

		if (strchr(name, '/') && is_driver(name))
			findings_add(findings, "needed-path", SEVERITY_NOTE,
				"%s NEEDs %s by its path: it is loaded too, and its symbols come "
				"second",
				object->path, name);
	}
}

static void note_paths(const struct search *search, int index, struct findings *findings)
{
	const struct search_object *object = &search->objects[index];
	char *found = NULL, *path = NULL;
	int fd;

	if (!search_find_own(search, index, DRIVER_NAME, &found)) {
		findings_add(findings, "rpath", SEVERITY_NOTE,
			"the search path of %s leads to %s: the preloaded name comes first, and "
			"that "
			"file serves as the real driver",
			object->path, found);
		free(found);
	}
	fd = scene_open(search->scene, object->path, O_RDONLY);
	if (fd < 0)
		return;
	if (!elf_driver_path(fd, &path) && path) {
		findings_add(findings, "absolute-path", index ? SEVERITY_NOTE : SEVERITY_WARNING,
			"%s holds the path %s: calls through a dlopen of it go past Hearth",
			object->path, path);
		findings_remedy(findings, "make it open \"" DRIVER_NAME "\" without a folder");
		free(path);
	}
	close(fd);
}

static void note_closure(const struct scene *scene, const char *path, struct findings *findings)
{
	struct search *search = calloc(1, sizeof(*search));

	if (!search) {
		findings->is_short = true;
		return;
	}
	/* The program itself was readable a moment ago: what can fail is memory. */
	findings->is_short |= search_walk(scene, path, scene->env[ENV_LD_LIBRARY_PATH], search) < 0;
	for (size_t i = 0; i < search->count && !findings->is_short; i++) {
		const struct search_object *object = &search->objects[i];

		if (is_driver(object->name))
			continue;
		if (object->path) {
			note_needed(object, findings);
			note_paths(search, (int)i, findings);
			continue;
		}
		findings_add(findings, "missing-library", SEVERITY_WARNING,
			"%s isn't found, which %s NEEDs: it can't start", object->name,
			search->objects[object->parent].path);
	}
	search_done(search);
	free(search);
}

bool program_judge(const struct scene *scene, const char *path, struct findings *findings)
{
	struct elf_facts facts;
	const char *why;
	int fd = scene_open(scene, path, O_RDONLY), rc;
	bool takes_effect;

	rc = fd < 0 ? fd : elf_read(fd, &facts);
	if (fd >= 0)
		close(fd);
	if (rc) {
		findings_add(findings, "unreadable", SEVERITY_PROBLEM, "%s: %s", path,
			rc == ELF_DAMAGED ? "a damaged ELF file"
			: rc == ELF_NO    ? "neither an ELF file nor a script"
					  : strerror(-rc));
		return false;
	}
	takes_effect = judge_kind(path, &facts, findings) &&
		       judge_interpreter(scene, path, &facts, findings);
	if (takes_effect && program_is_secure(scene, path, &why)) {
		findings_add(findings, why, SEVERITY_PROBLEM,
			"%s runs with more rights than its caller (%s): the loader ignores "
			"LD_PRELOAD, and libhearth.so would step aside",
			path, why);
		findings_remedy(findings, "run it as its owner, or take the bits off: "
					  "chmod ug-s, setcap -r");
		takes_effect = false;
	}
	takes_effect = takes_effect && judge_asan(scene, path, &facts, findings);
	if (takes_effect)
		note_closure(scene, path, findings);
	elf_done(&facts);
	return takes_effect;
}
