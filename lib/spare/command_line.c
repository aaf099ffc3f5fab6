/* Reading a python's command line, as getopt in CPython's own does (Python documentation, "Command
 * line and environment"). Runs in `hearth run --spare` and `hearth spare start`. What is not
 * understood in full is left to a plain start. */
#include "spare/command_line.h"

#include "base/env.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without a value; -i, -v, -x, -h, -V, -? and -d are left out: they change more than they say. */
#define PLAIN_LETTERS "bBEIOPqsSu"

static bool is_elf(const char *path)
{
	char head[SELFMAG];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return false;
	got = read(fd, head, sizeof(head));
	close(fd);
	return got == sizeof(head) && !memcmp(head, ELFMAG, SELFMAG);
}

static bool is_program(const char *path)
{
	struct stat info;

	return !stat(path, &info) && S_ISREG(info.st_mode) && !access(path, X_OK);
}

/* The first program of that name in PATH, as execvp finds it. */
static int find_in_path(const char *name, char ret_path[PATH_MAX])
{
	const char *list = env_get(ENV_PATH);

	while (list && *list) {
		size_t length = strcspn(list, ":");
		int whole = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)length, list, name);

		if (list[0] != '/' || whole < 0 || whole >= PATH_MAX)
			return -ENOTSUP;
		if (is_program(ret_path))
			return 0;
		list += length + (list[length] == ':');
	}
	return -ENOENT;
}

/* What python itself would make of "." and ".." is its own matter. */
static bool is_plain_path(const char *path)
{
	return strncmp(path, "./", 2) && strncmp(path, "../", 3) && !strstr(path, "/./") &&
	       !strstr(path, "/../") && !strstr(path, "//");
}

static int find_python(const char *word, char ret_path[PATH_MAX])
{
	int rc = 0, length;

	if (!strchr(word, '/')) {
		rc = find_in_path(word, ret_path);
	} else {
		char folder[PATH_MAX] = "";

		if (!is_plain_path(word))
			return -ENOTSUP;
		if (word[0] != '/' && !getcwd(folder, sizeof(folder)))
			return -errno;
		length = snprintf(ret_path, PATH_MAX, "%s%s%s", folder, *folder ? "/" : "", word);
		if (length < 0 || length >= PATH_MAX)
			return -ENAMETOOLONG;
		rc = is_program(ret_path) ? 0 : -ENOENT;
	}
	if (rc)
		return rc;
	return is_elf(ret_path) ? 0 : -ENOTSUP;
}

/* One word of options. How many words it took, 0 where it is not known; -c and -m end them. */
static int take_option(char **words, struct command_line *line)
{
	for (const char *letter = words[0] + 1; *letter; letter++) {
		const char *value = letter[1] ? letter + 1 : words[1];
		int taken = letter[1] ? 1 : 2;

		if (strchr(PLAIN_LETTERS, *letter))
			continue;
		if (!strchr("WXcm", *letter) || !value)
			return 0;
		if (*letter == 'c' || *letter == 'm') {
			if (letter != words[0] + 1)
				return 0;
			line->kind = *letter == 'c' ? COMMAND_LINE_CODE : COMMAND_LINE_MODULE;
			line->target = value;
		}
		return taken;
	}
	return 1;
}

int command_line_read(char **words, struct command_line *ret_line)
{
	struct command_line line = {.words = words, .flags = words + 1};
	char **word = words + 1;
	int rc;

	if (!words[0] || strncmp(strrchr(words[0], '/') ? strrchr(words[0], '/') + 1 : words[0],
				 "python", strlen("python")))
		return -ENOTSUP;
	while (*word && (*word)[0] == '-') {
		int taken = (*word)[1] && (*word)[1] != '-' ? take_option(word, &line) : 0;

		if (!taken)
			return -ENOTSUP;
		if (line.kind == COMMAND_LINE_NONE)
			line.flag_count += taken;
		word += taken;
		if (line.kind != COMMAND_LINE_NONE)
			break;
	}
	if (line.kind == COMMAND_LINE_NONE && *word) {
		line.kind = COMMAND_LINE_SCRIPT;
		line.target = *word++;
	}
	line.rest = word;
	rc = find_python(words[0], line.python);
	if (rc)
		return rc;
	*ret_line = line;
	return 0;
}
