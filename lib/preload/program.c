/* Naming the program. Runs in the user's program at its first cuInit and with each line of
 * HEARTH_LOG; must leave no descriptor and keep nothing of the command line but one base name. */
#include "preload/program.h"

#include "preload/spare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Enough to reach the script's name in any sensible command line. */
#define COMMAND_LINE_MAX 4096

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* The word after `word`, or NULL at the end of what was read. */
static const char *next_word(const char *word, const char *end)
{
	word += strlen(word) + 1;
	return word < end ? word : NULL;
}

/* Python's options that take the next word as their value. */
static bool takes_value(const char *option)
{
	return !strcmp(option, "-W") || !strcmp(option, "-X") ||
	       !strcmp(option, "--check-hash-based-pycs");
}

static const char *python_script(const char *interpreter, const char *end)
{
	const char *word = next_word(interpreter, end);

	for (; word && *word == '-'; word = next_word(word, end)) {
		if (!strcmp(word, "-m")) {
			word = next_word(word, end);
			break;
		}
		if (!strncmp(word, "-c", 2) || !strcmp(word, "-"))
			return interpreter;
		if (takes_value(word))
			word = next_word(word, end);
		if (!word)
			return interpreter;
	}
	return word ? word : interpreter;
}

void program_name(char ret_name[PROGRAM_NAME_SIZE])
{
	char words[COMMAND_LINE_MAX];
	const char *name = program_invocation_short_name;
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd >= 0 ? read(fd, words, sizeof(words) - 1) : -1;
	size_t length;

	if (fd >= 0)
		close(fd);
	if (size > 0) {
		words[size] = '\0';
		name = base_name(words);
		if (!strncmp(name, "python", strlen("python")))
			name = base_name(python_script(words, words + size));
	}
	/* The command line of a spare is no program's. */
	if (spare_program())
		name = spare_program();
	length = strnlen(name, PROGRAM_NAME_SIZE - 1);
	memcpy(ret_name, name, length);
	ret_name[length] = '\0';
}
