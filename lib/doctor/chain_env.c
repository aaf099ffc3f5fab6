/* What env(1) does to an environment. Runs in the hearth tool. */
#include "doctor/chain_env.h"

#include "launch/preload_list.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SPLIT 128 /* words of one `env -S` text */

static void clear(struct chain *chain)
{
	memset(chain->scene.env, 0, sizeof(chain->scene.env));
	chain_lose(chain, "env-i", "env -i ... hearth run PROGRAM (hearth by its full path)",
		"`env -i` drops LD_PRELOAD");
}

static void unset(struct chain *chain, const char *name)
{
	for (int id = 0; id < ENV_COUNT; id++)
		if (!strcmp(env_info((enum env_id)id)->name, name))
			chain->scene.env[id] = NULL;
	if (!strcmp(name, env_info(ENV_LD_PRELOAD)->name))
		chain_lose(
			chain, "env-unset", "leave LD_PRELOAD set", "`env -u LD_PRELOAD` drops it");
}

static void assign(struct chain *chain, const char *word)
{
	size_t length = strcspn(word, "=");
	const char *value = word[length + 1] ? word + length + 1 : NULL; /* empty counts as unset */

	for (int id = 0; id < ENV_COUNT; id++) {
		const char *name = env_info((enum env_id)id)->name;

		if (strlen(name) != length || strncmp(name, word, length))
			continue;
		if (id == ENV_LD_PRELOAD && !preload_list_has(value, "/libhearth.so"))
			chain_lose(chain, "overwritten",
				"add libhearth.so to that list: LD_PRELOAD=OTHER:LIBHEARTH",
				"`env %s` puts another list in the place of ours", word);
		else if (id == ENV_LD_PRELOAD)
			chain->lost_id = NULL;
		chain->scene.env[id] = value;
	}
}

/* `env -S TEXT`: words at blanks, quotes kept together. Returns how many were found. */
static size_t split(char *text, char *ret_words[MAX_SPLIT])
{
	size_t count = 0;
	char *to = text;

	while (count < MAX_SPLIT) {
		char quote = 0;

		text += strspn(text, " \t");
		if (!*text)
			return count;
		ret_words[count++] = to;
		for (; *text && (quote || !strchr(" \t", *text)); text++) {
			if (quote ? *text == quote : *text == '"' || *text == '\'')
				quote = quote ? 0 : *text;
			else
				*to++ = *text;
		}
		if (*text)
			text++;
		*to++ = 0;
	}
	return count;
}

/* Puts the words of the text in the place of words[at] .. words[at + used - 1]. */
static bool splice(struct chain *chain, size_t at, size_t used, const char *text)
{
	char *copy = chain_keep(chain, strdup(text)), *parts[MAX_SPLIT], **words;
	size_t count, left = 0;

	if (!copy)
		return false;
	count = split(copy, parts);
	while (chain->words[at + used + left])
		left++;
	words = chain_keep(chain, calloc(at + count + left + 1, sizeof(*words)));
	if (!words)
		return false;
	memcpy(words, chain->words, at * sizeof(*words));
	memcpy(words + at, parts, count * sizeof(*words));
	memcpy(words + at + count, chain->words + at + used, left * sizeof(*words));
	chain->words = words;
	return true;
}

/* One option at words[at]; returns how many words it takes, 0 where it was replaced by others. */
static size_t option(struct chain *chain, size_t at)
{
	const char *word = chain->words[at], *next = chain->words[at + 1];
	static const char unset_long[] = "--unset=", split_long[] = "--split-string=";

	if (!strcmp(word, "-") || !strcmp(word, "--ignore-environment")) {
		clear(chain);
	} else if (!strncmp(word, unset_long, sizeof(unset_long) - 1)) {
		unset(chain, word + sizeof(unset_long) - 1);
	} else if (!strncmp(word, split_long, sizeof(split_long) - 1)) {
		return splice(chain, at, 1, word + sizeof(split_long) - 1) ? 0 : 1;
	} else if (word[1] != '-') {
		for (const char *letter = word + 1; *letter; letter++) {
			const char *value = letter[1] ? letter + 1 : next;
			size_t used = letter[1] || !next ? 1 : 2;

			if (*letter == 'i')
				clear(chain);
			if (*letter == 'u' && value)
				unset(chain, value);
			if (*letter == 'S' && value)
				return splice(chain, at, used, value) ? 0 : used;
			if (strchr("uC", *letter))
				return used;
		}
	} else if ((!strcmp(word, "--unset") || !strcmp(word, "--chdir")) && next) {
		if (word[2] == 'u')
			unset(chain, next);
		return 2;
	}
	return 1;
}

enum chain_step chain_env_follow(struct chain *chain)
{
	size_t at = 1;

	while (chain->words[at] && chain->words[at][0] == '-' && strcmp(chain->words[at], "--"))
		at += option(chain, at);
	if (chain->words[at] && !strcmp(chain->words[at], "--"))
		at++;
	for (; chain->words[at] && strchr(chain->words[at], '='); at++)
		assign(chain, chain->words[at]);
	if (!chain->words[at])
		return CHAIN_END; /* env alone prints the environment */
	findings_add(chain->findings, "wrapper", SEVERITY_OK, "env starts %s", chain->words[at]);
	chain->words += at;
	return CHAIN_ON;
}
