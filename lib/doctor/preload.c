/* Judging preload lists. Runs in the hearth tool; loads nothing of what it judges. */
#include "doctor/preload.h"

#include "doctor/search.h"
#include "launch/preload_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SYSTEM_LIST "/etc/ld.so.preload"
#define SYSTEM_LIST_SIZE 16384
#define OUR_NAME "libhearth.so"
#define ALIAS_NAME "libhearth-alias.so"
#define DRIVER_NAME "libcuda.so.1"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Opens the entry as the loader finds it. Returns a descriptor or -errno. */
static int open_entry(const struct scene *scene, const char *entry, const char *library_path)
{
	struct search *search;
	char *path = NULL;
	int rc;

	if (strchr(entry, '/'))
		return scene_open(scene, entry, O_RDONLY);
	search = calloc(1, sizeof(*search));
	if (!search)
		return -ENOMEM;
	search_prepare(scene, library_path, search);
	rc = search_find(search, -1, entry, &path);
	search_done(search);
	free(search);
	if (rc)
		return rc;
	rc = scene_open(scene, path, O_RDONLY);
	free(path);
	return rc;
}

/* libhearth.so NEEDs the alias beside it; without, the loader ends every program. */
static bool has_alias(const struct scene *scene, const char *entry, const struct elf_facts *facts)
{
	const char *slash = strrchr(entry, '/');
	bool is_needed = false, is_there;
	char *path;

	for (size_t i = 0; i < facts->needed_count; i++)
		is_needed |= !strcmp(facts->needed[i], ALIAS_NAME);
	if (!is_needed || !slash)
		return true;
	if (asprintf(&path, "%.*s" ALIAS_NAME, (int)(slash + 1 - entry), entry) < 0)
		return true;
	is_there = scene_exists(scene, path);
	free(path);
	return is_there;
}

static enum preload_state judge_ours(const struct scene *scene, const char *entry, int fd,
	const struct elf_facts *facts, struct findings *findings)
{
	struct statvfs about;

	if (!fstatvfs(fd, &about) && about.f_flag & ST_NOEXEC) {
		findings_add(findings, "preload", SEVERITY_PROBLEM,
			"%s is on a file system mounted noexec: no program can load it", entry);
		findings_remedy(findings, "install it elsewhere, e.g. /usr/lib/hearth");
		return PRELOAD_BROKEN;
	}
	if (!facts->soname || strcmp(facts->soname, DRIVER_NAME)) {
		findings_add(findings, "preload", SEVERITY_PROBLEM,
			"%s doesn't carry the name " DRIVER_NAME ": it is not Hearth's library",
			entry);
		findings_remedy(findings, "install it again");
		return PRELOAD_BROKEN;
	}
	if (!has_alias(scene, entry, facts)) {
		findings_add(findings, "preload", SEVERITY_PROBLEM,
			"%s lacks " ALIAS_NAME " beside it: no program starts under it", entry);
		findings_remedy(findings, "install both files in one folder");
		return PRELOAD_BROKEN;
	}
	findings_add(findings, "preload", SEVERITY_OK, "%s", entry);
	return PRELOAD_FIRST;
}

/* Another library in front of ours or behind it. Returns whether it takes the driver's name. */
static bool judge_other(const char *entry, int fd, const struct elf_facts *facts, bool is_before,
	struct findings *findings)
{
	static const char *const hooks[] = {
		"dlsym", "dlopen", "cuInit", "cuGetProcAddress", "cuGetProcAddress_v2", NULL};
	const char *hook = NULL;

	if (facts->soname && !strcmp(facts->soname, DRIVER_NAME) && is_before) {
		findings_add(findings, "preload-other", SEVERITY_PROBLEM,
			"%s also carries the name " DRIVER_NAME " and stands before " OUR_NAME
			": programs get it instead",
			entry);
		findings_remedy(findings, "take it out of LD_PRELOAD");
		return true;
	}
	if (!elf_defines(fd, hooks, &hook) && hook) {
		findings_add(findings, "preload-other", SEVERITY_WARNING,
			"%s defines %s: it may take calls away from " OUR_NAME, entry, hook);
		findings_remedy(findings, "if something looks wrong, take it out of LD_PRELOAD");
	} else {
		findings_add(findings, "preload-other", SEVERITY_NOTE,
			"%s is preloaded too; nothing in it touches the driver", entry);
	}
	return false;
}

static void judge_missing(const char *entry, bool is_ours, int rc, struct findings *findings)
{
	findings_add(findings, is_ours ? "preload" : "preload-other",
		is_ours ? SEVERITY_PROBLEM : SEVERITY_WARNING,
		"%s: %s; the loader prints a line in every program and goes on without it", entry,
		rc == ELF_NO || rc == ELF_DAMAGED ? "not an ELF library" : strerror(-rc));
	findings_remedy(findings,
		is_ours ? "correct its path in LD_PRELOAD (in a container: mount it there)"
			: "take it out of LD_PRELOAD");
}

static enum preload_state judge_entry(const struct scene *scene, const char *entry,
	const char *library_path, enum preload_state so_far, struct findings *findings)
{
	bool is_ours = !strcmp(base_name(entry), OUR_NAME);
	enum preload_state state = PRELOAD_NONE;
	struct elf_facts facts;
	int fd, rc;

	if (strchr(entry, '$')) {
		findings_add(findings, "preload-other", SEVERITY_NOTE,
			"%s is expanded by each program's loader: not examined", entry);
		return is_ours ? PRELOAD_FIRST : so_far;
	}
	fd = open_entry(scene, entry, library_path);
	rc = fd < 0 ? fd : elf_read(fd, &facts);
	if (rc) {
		judge_missing(entry, is_ours, rc, findings);
		state = is_ours ? PRELOAD_BROKEN : PRELOAD_NONE;
	} else if (!facts.is_native) {
		judge_missing(entry, is_ours, ELF_NO, findings);
		state = is_ours ? PRELOAD_BROKEN : PRELOAD_NONE;
	} else if (is_ours) {
		state = judge_ours(scene, entry, fd, &facts, findings);
	} else if (judge_other(entry, fd, &facts, so_far == PRELOAD_NONE, findings)) {
		state = PRELOAD_BEHIND;
	}
	if (!rc)
		elf_done(&facts);
	if (fd >= 0)
		close(fd);
	return state;
}

enum preload_state preload_judge(const struct scene *scene, const char *list,
	const char *library_path, struct findings *findings)
{
	enum preload_state state = PRELOAD_NONE;
	bool is_behind = false, is_ours_seen = false;
	char *copy = list ? strdup(list) : NULL, *rest = copy, *entry;

	/* ld.so(8): separated by spaces or colons, in both places; a file also by line ends. */
	while ((entry = strsep(&rest, " :\t\n"))) {
		enum preload_state one;

		if (!*entry)
			continue;
		one = judge_entry(scene, entry, library_path, state, findings);
		if (one == PRELOAD_BEHIND) {
			is_behind = true;
		} else if (one != PRELOAD_NONE && !is_ours_seen) {
			is_ours_seen = true;
			state = one;
		}
	}
	free(copy);
	return state == PRELOAD_FIRST && is_behind ? PRELOAD_BEHIND : state;
}

char *preload_system_list(const struct scene *scene)
{
	char *text = malloc(SYSTEM_LIST_SIZE);

	if (text && scene_read(scene, SYSTEM_LIST, text, SYSTEM_LIST_SIZE) > 0)
		return text;
	free(text);
	return NULL;
}

int preload_examine(const struct scene *scene, struct findings *findings)
{
	const char *set = scene->env[ENV_LD_PRELOAD];
	char *system_list = preload_system_list(scene), *list = NULL;
	int rc = 0;

	if (preload_list_has(set, "/" OUR_NAME) || preload_list_has(system_list, "/" OUR_NAME)) {
		preload_judge(scene, set, scene->env[ENV_LD_LIBRARY_PATH], findings);
		preload_judge(scene, system_list, NULL, findings);
	} else if (!scene->library) {
		findings_add(findings, "preload", SEVERITY_PROBLEM,
			OUR_NAME " is not found beside this program");
		findings_remedy(findings, "install it again");
	} else if (!preload_list_can_hold(scene->library)) {
		findings_add(findings, "preload", SEVERITY_PROBLEM,
			"%s can't stand in LD_PRELOAD: the loader splits at ':' and blanks",
			scene->library);
		findings_remedy(findings, "install it in another folder");
	} else {
		rc = preload_list_add(set, scene->library, &list);
		if (!rc)
			preload_judge(scene, list, scene->env[ENV_LD_LIBRARY_PATH], findings);
		preload_judge(scene, system_list, NULL, findings);
		findings_add(findings, "how", SEVERITY_NOTE,
			"LD_PRELOAD doesn't hold " OUR_NAME " here: only `hearth run PROGRAM` is "
			"intercepted");
	}
	free(system_list);
	free(list);
	return rc;
}
