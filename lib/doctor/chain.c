/* Following a command to the program that counts. Runs in the hearth tool; runs nothing of it. */
#include "doctor/chain.h"

#include "base/array.h"
#include "doctor/chain_env.h"
#include "doctor/program.h"
#include "doctor/wrapper.h"
#include "launch/preload_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHEBANG_SIZE 256 /* BINPRM_BUF_SIZE in Linux */
#define SHELL "/bin/sh"

void *chain_keep(struct chain *chain, void *memory)
{
	void **owned = array_resize(chain->owned, chain->owned_count + 1, sizeof(*owned));

	if (owned)
		chain->owned = owned;
	if (!owned || !memory) {
		free(memory);
		chain->is_short = true;
		return NULL;
	}
	owned[chain->owned_count++] = memory;
	return memory;
}

void chain_lose(struct chain *chain, const char *id, const char *remedy, const char *format, ...)
{
	va_list arguments;
	char *text = NULL;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		text = NULL;
	va_end(arguments);
	chain->lost_text = chain_keep(chain, text);
	chain->lost_id = id;
	chain->lost_remedy = remedy;
	chain->scene.env[ENV_LD_PRELOAD] = NULL;
}

void chain_add_library(struct chain *chain)
{
	char *list;

	if (!chain->scene.library ||
		preload_list_add(chain->scene.env[ENV_LD_PRELOAD], chain->scene.library, &list))
		return;
	chain->scene.env[ENV_LD_PRELOAD] = chain_keep(chain, list);
	chain->lost_id = NULL;
}

int chain_init(const struct scene *scene, char *const *words, struct findings *findings,
	struct chain *ret_chain)
{
	size_t count = 0;

	*ret_chain = (struct chain){.scene = *scene, .findings = findings};
	while (words[count])
		count++;
	ret_chain->words = chain_keep(ret_chain, calloc(count + 1, sizeof(*words)));
	if (!ret_chain->words)
		return -ENOMEM;
	memcpy(ret_chain->words, words, count * sizeof(*words));
	return 0;
}

void chain_done(struct chain *chain)
{
	while (chain->owned_count)
		free(chain->owned[--chain->owned_count]);
	free(chain->owned);
	chain->owned = NULL;
}

/* New words: the given ones, then those of the chain from `from` on. */
static enum chain_step go_on(struct chain *chain, char *const *first, size_t count, size_t from)
{
	size_t left = 0;
	char **words;

	while (chain->words[from + left])
		left++;
	words = chain_keep(chain, calloc(count + left + 1, sizeof(*words)));
	if (!words)
		return CHAIN_STOP;
	if (count)
		memcpy(words, first, count * sizeof(*words));
	memcpy(words + count, chain->words + from, left * sizeof(*words));
	chain->words = words;
	return CHAIN_ON;
}

/* "#!/usr/bin/env python3": the interpreter, then at most one word, which may hold blanks; then the
 * script's path and the rest (execve(2)). */
static enum chain_step follow_script(struct chain *chain, const char *head)
{
	char *line = chain_keep(chain, strdup(head + 2)),
	     *path = chain_keep(chain, strdup(chain->path));
	char *first[3], *end;
	size_t count = 0;

	if (!line || !path)
		return CHAIN_STOP;
	line[strcspn(line, "\n")] = 0;
	for (end = line + strlen(line); end > line && strchr(" \t\r", end[-1]);)
		*--end = 0;
	line += strspn(line, " \t");
	if (!*line) {
		findings_add(chain->findings, "script", SEVERITY_PROBLEM,
			"%s has an empty first line after #!", chain->path);
		return CHAIN_STOP;
	}
	first[count++] = line;
	line += strcspn(line, " \t");
	if (*line) {
		*line++ = 0;
		first[count++] = line + strspn(line, " \t");
	}
	first[count++] = path;
	findings_add(chain->findings, "script", SEVERITY_OK, "%s is a script for %s%s%s", path,
		first[0], count == 3 ? " " : "", count == 3 ? first[1] : "");
	return go_on(chain, first, count, 1);
}

static void lose_at(struct chain *chain, const char *name)
{
	chain_lose(chain, "sudo",
		"put it behind: e.g. `sudo hearth run PROGRAM` (hearth by its full path)",
		"%s doesn't hand LD_PRELOAD on", name);
}

static bool has_word(const struct chain *chain, const char *const *wanted)
{
	for (size_t i = 1; chain->words[i]; i++)
		for (size_t n = 0; wanted[n]; n++)
			if (!strcmp(chain->words[i], wanted[n]))
				return true;
	return false;
}

static enum chain_step follow_away(struct chain *chain, const char *name)
{
	static const char *const scope[] = {"--scope", NULL};

	/* systemd-run --scope runs it here; without, the service manager does. */
	if (has_word(chain, scope))
		return CHAIN_INHERIT;
	findings_add(chain->findings, "elsewhere", SEVERITY_PROBLEM,
		"%s starts the program in another place, where this LD_PRELOAD doesn't follow",
		name);
	findings_remedy(chain->findings,
		"set LD_PRELOAD there (Docker: ENV in the image), or call `hearth run` there");
	return CHAIN_STOP;
}

/* Shells, launchers and tools: their children inherit the environment, even where the launcher
 * itself is static. */
static enum chain_step follow_parent(struct chain *chain, enum wrapper_kind kind, const char *name)
{
	static const char *const login[] = {"-", "-l", "--login", NULL};

	if (kind == WRAPPER_SHELL) {
		findings_add(chain->findings, "shell", SEVERITY_NOTE,
			"%s and what it starts inherit the preload; its text isn't read", name);
	} else if (kind == WRAPPER_TOOL) {
		findings_add(chain->findings, "injection", SEVERITY_WARNING,
			"%s puts itself into the program: calls are passed through and recorded, "
			"no more",
			name);
		findings_remedy(chain->findings, "measure without the tool");
	} else {
		findings_add(chain->findings, "launcher", SEVERITY_NOTE,
			"%s hands its environment on; the program it starts isn't examined", name);
		findings_remedy(chain->findings, "hearth doctor -- PROGRAM");
	}
	if (kind == WRAPPER_SWITCH && has_word(chain, login))
		lose_at(chain, name);
	return CHAIN_INHERIT;
}

/* A wrapper whose program is among the words. */
static enum chain_step follow_words(
	struct chain *chain, const struct wrapper *wrapper, const char *name)
{
	static const char *const no_gain[] = {"--no-new-privs", "--nnp", NULL};
	size_t at = wrapper_skip(wrapper, chain->words);

	if (!at)
		return CHAIN_END; /* e.g. `nice` alone: the wrapper is the program */
	if (wrapper->kind == WRAPPER_LOSES)
		lose_at(chain, name);
	if (wrapper->kind == WRAPPER_HEARTH)
		chain_add_library(chain);
	if (!strcmp(name, "setpriv") && has_word(chain, no_gain))
		chain->scene.has_no_new_privs = true;
	findings_add(
		chain->findings, "wrapper", SEVERITY_OK, "%s starts %s", name, chain->words[at]);
	return go_on(chain, NULL, 0, at);
}

static enum chain_step follow_wrapper(
	struct chain *chain, const struct wrapper *wrapper, const char *name)
{
	const char *why;

	if (program_is_secure(&chain->scene, chain->path, &why))
		lose_at(chain, name);
	switch (wrapper->kind) {
	case WRAPPER_AWAY:
		return follow_away(chain, name);
	case WRAPPER_SHELL:
	case WRAPPER_LAUNCHER:
	case WRAPPER_SWITCH:
	case WRAPPER_TOOL:
		return follow_parent(chain, wrapper->kind, name);
	case WRAPPER_ENV:
		return chain_env_follow(chain);
	case WRAPPER_HEARTH:
		if (!chain->words[1] || strcmp(chain->words[1], "run"))
			return CHAIN_END;
		return follow_words(chain, wrapper, name);
	case WRAPPER_LOADER:
	case WRAPPER_LOSES:
	case WRAPPER_PASSES:
		return follow_words(chain, wrapper, name);
	}
	return CHAIN_END;
}

/* Some are scripts, as ncu is; a script that bears the name of a small tool is just a script. */
static bool may_be_script(const struct wrapper *wrapper)
{
	return wrapper->kind == WRAPPER_LOSES || wrapper->kind == WRAPPER_AWAY ||
	       wrapper->kind == WRAPPER_LAUNCHER || wrapper->kind == WRAPPER_TOOL;
}

enum chain_step chain_step(struct chain *chain)
{
	char head[SHEBANG_SIZE], *shell[] = {SHELL, NULL};
	const struct wrapper *wrapper;
	const char *slash;
	bool is_elf;
	ssize_t size;

	if (!scene_find_program(&chain->scene, chain->words[0], chain->path)) {
		findings_add(chain->findings, "not-found", SEVERITY_PROBLEM,
			strchr(chain->words[0], '/') ? "%s: no file that can be run"
						     : "%s: no such program in PATH",
			chain->words[0]);
		return CHAIN_STOP;
	}
	size = scene_read(&chain->scene, chain->path, head, sizeof(head));
	/* A file that may be run, not read, is none of the kernel's scripts. */
	is_elf = size < 0 || (size >= 4 && !memcmp(head, "\177ELF", 4));
	slash = strrchr(chain->words[0], '/');
	wrapper = wrapper_find(slash ? slash + 1 : chain->words[0]);
	if (wrapper && (is_elf || may_be_script(wrapper)))
		return follow_wrapper(chain, wrapper, wrapper->name);
	if (is_elf)
		return CHAIN_END;
	if (size >= 2 && head[0] == '#' && head[1] == '!')
		return follow_script(chain, head);
	/* What the kernel can't run, execvp(3) and shells hand to the shell. */
	shell[1] = chain_keep(chain, strdup(chain->path));
	findings_add(chain->findings, "script", SEVERITY_NOTE, "%s has no #! line: run by " SHELL,
		chain->path);
	return shell[1] ? go_on(chain, shell, 2, 1) : CHAIN_STOP;
}
