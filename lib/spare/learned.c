/* The files of what programs import. Runs in `hearth run` and in what holds a spare. Trusts no file
 * that another user could have written. */
#include "spare/learned.h"

#include "base/settings.h"
#include "base/state_dir.h"
#include "profile/digest.h"
#include "spare/whose.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/spares"
#define KEY_BYTES 16
#define MOST_FILES 512
#define MOST_BYTES (1u << 20)

/* First lines. */
static const char imports_head[] = "hearth spare 1: imports\n";
static const char never_head[] = "hearth spare 1: never: ";

static char *no_imports[] = {NULL};

/* One of the oldest goes; which of those of one second does not matter. */
static void make_room(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat info;
	char oldest[PATH_MAX] = "";
	time_t oldest_s = 0;
	int count = 0;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || fstatat(dirfd(dir), entry->d_name, &info, 0))
			continue;
		count++;
		if (!oldest[0] || info.st_mtime < oldest_s) {
			snprintf(oldest, sizeof(oldest), "%s", entry->d_name);
			oldest_s = info.st_mtime;
		}
	}
	if (dir && count > MOST_FILES)
		unlinkat(dirfd(dir), oldest, 0);
	if (dir)
		closedir(dir);
}

static void make_key(const struct command_line *line, char ret_key[2 * KEY_BYTES + 1])
{
	uint8_t digest[DIGEST_SIZE];
	struct identity identity;
	struct digest_state state;
	struct stat script = {0};
	char text[128];

	whose_profile(line, no_imports, &identity);
	if (line->kind == COMMAND_LINE_SCRIPT && stat(line->target, &script))
		script = (struct stat){0};
	snprintf(text, sizeof(text), "%ju %jd.%09ld", (uintmax_t)script.st_size,
		(intmax_t)script.st_mtim.tv_sec, script.st_mtim.tv_nsec);
	digest_init(&state);
	digest_update(&state, identity.digest, sizeof(identity.digest));
	digest_text(&state, line->python);
	for (int i = 0; i < line->flag_count; i++)
		digest_text(&state, line->flags[i]);
	digest_text(&state, text);
	digest_final(&state, digest);
	digest_format(digest, KEY_BYTES, ret_key);
}

int learned_path(const struct command_line *line, char ret_path[PATH_MAX])
{
	char folder[PATH_MAX], key[2 * KEY_BYTES + 1];
	struct settings settings;
	int rc;

	settings_read(&settings);
	rc = state_dir_path(&settings, folder, sizeof(folder) - sizeof(FOLDER));
	if (rc)
		return rc;
	strcat(folder, FOLDER);
	rc = state_dir_make(folder);
	if (rc)
		return rc;
	make_room(folder);
	make_key(line, key);
	return snprintf(ret_path, PATH_MAX, "%s/%s", folder, key) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static char *read_own(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat info;
	char *text = NULL;
	ssize_t got = -1;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
		!(info.st_mode & (S_IWGRP | S_IWOTH)) && info.st_size < MOST_BYTES)
		text = malloc((size_t)info.st_size + 1);
	if (text)
		got = read(fd, text, (size_t)info.st_size);
	close(fd);
	if (got < 0) {
		free(text);
		return NULL;
	}
	text[got] = '\0';
	return text;
}

static bool is_module(const char *name)
{
	bool is_start = true;

	for (; *name; name++) {
		if (*name == '.' ? is_start : !isalnum((unsigned char)*name) && *name != '_')
			return false;
		is_start = *name == '.';
	}
	return !is_start;
}

int learned_read(const char *path, struct learned *ret_learned)
{
	struct learned learned = {.imports = no_imports, .text = read_own(path)};
	size_t lines = 1, count = 0;
	char *rest, *name;

	*ret_learned = learned;
	if (!learned.text)
		return 0;
	learned.is_never = !strncmp(learned.text, never_head, strlen(never_head));
	if (strncmp(learned.text, imports_head, strlen(imports_head)) != 0) {
		*ret_learned = learned;
		return 0;
	}
	for (const char *c = learned.text; *c; c++)
		lines += *c == '\n';
	learned.imports = calloc(lines + 1, sizeof(*learned.imports));
	if (!learned.imports) {
		free(learned.text);
		return -ENOMEM;
	}
	rest = learned.text + strlen(imports_head);
	while ((name = strsep(&rest, "\n")))
		if (is_module(name))
			learned.imports[count++] = name;
	learned.is_taught = true;
	*ret_learned = learned;
	return 0;
}

void learned_done(struct learned *learned)
{
	if (learned->imports != no_imports)
		free(learned->imports);
	free(learned->text);
	*learned = (struct learned){.imports = no_imports};
}

unsigned learned_count(const char *path)
{
	char runs[PATH_MAX];
	struct stat info;
	unsigned count = 0;
	int fd;

	if (snprintf(runs, sizeof(runs), "%s.runs", path) >= PATH_MAX)
		return 0;
	fd = open(runs, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return 0;
	if (!fstat(fd, &info) && (info.st_size >= LEARNED_RUNS || write(fd, ".", 1) == 1))
		count = info.st_size >= LEARNED_RUNS ? LEARNED_RUNS : (unsigned)info.st_size + 1;
	close(fd);
	return count;
}

void learned_forget(const char *profiles)
{
	const char *slash = strrchr(profiles, '/');
	char folder[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	if (!slash || snprintf(folder, sizeof(folder), "%.*s" FOLDER, (int)(slash - profiles),
			      profiles) >= PATH_MAX)
		return;
	dir = opendir(folder);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

void learned_give_up(const char *path, const char *reason)
{
	char made[PATH_MAX];
	FILE *file;

	if (snprintf(made, sizeof(made), "%s.%d", path, (int)getpid()) >= PATH_MAX)
		return;
	file = fopen(made, "we");
	if (!file)
		return;
	fprintf(file, "%s%.500s\n", never_head, reason);
	if (fchmod(fileno(file), 0600) | fclose(file) || rename(made, path))
		unlink(made);
}
