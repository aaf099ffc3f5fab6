/* Command lines of programs and of python. Pure functions over the caller's strings; run in the
 * user's process before main, so they never allocate, never open anything, and are bounded. */
#include "profile/command.h"

#include <stdlib.h>
#include <string.h>

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length >= tail && !strcmp(text + length - tail, suffix);
}

static bool is_interpreter(const char *name)
{
	return starts_with(name, "python") || starts_with(name, "pypy");
}

/* The value of `--option VALUE` or `--option=VALUE` among the program's arguments, or "". */
static const char *option_value(const struct identity_source *source, int first, const char *option)
{
	size_t length = strlen(option);

	for (int i = first; i < source->argc; i++) {
		const char *word = source->argv[i];

		if (strncmp(word, option, length))
			continue;
		if (word[length] == '=')
			return word + length + 1;
		if (!word[length] && i + 1 < source->argc)
			return source->argv[i + 1];
	}
	return "";
}

static void add_letter(struct command *command, char letter)
{
	size_t length = strlen(command->option_letters);

	if (length + 1 < sizeof(command->option_letters) &&
		!strchr(command->option_letters, letter))
		command->option_letters[length] = letter;
}

/* One word of python's own options, `-uBc text` at argv[i]. Returns the index of the next word. */
static int read_option(const struct identity_source *source, int i, struct command *command)
{
	for (const char *letter = source->argv[i] + 1; *letter; letter++) {
		const char *value = letter[1] ? letter + 1 : NULL;

		if (!strchr("cmWX", *letter)) {
			add_letter(command, *letter);
			continue;
		}
		if (!value && i + 1 < source->argc)
			value = source->argv[++i];
		if (*letter == 'c' || *letter == 'm') {
			command->kind = *letter == 'c' ? IDENTITY_TEXT : IDENTITY_MODULE;
			command->what = value ? value : "";
		}
		break;
	}
	return i + 1;
}

/* Python's command line: options, then one of `-c text`, `-m module`, script, `-` or nothing. */
static void read_python(const struct identity_source *source, struct command *command)
{
	int i = 1;

	command->kind = IDENTITY_STDIN;
	while (i < source->argc && command->kind == IDENTITY_STDIN) {
		const char *word = source->argv[i];

		if (!strcmp(word, "--") && i + 1 < source->argc)
			word = source->argv[++i];
		else if (starts_with(word, "--")) { /* one of them has a value of its own */
			i += strcmp(word, "--check-hash-based-pycs") ? 1 : 2;
			add_letter(command, word[2]);
			continue;
		} else if (word[0] == '-' && word[1]) {
			i = read_option(source, i, command);
			continue;
		}
		i++;
		if (!strcmp(word, "-"))
			break;
		command->kind = IDENTITY_SCRIPT;
		command->what = word;
	}
	command->arguments = i < source->argc ? i : source->argc;
}

static bool is_ray_worker(const char *script)
{
	return strstr(script, "/ray/") &&
	       (ends_with(script, "/default_worker.py") || ends_with(script, "/setup_worker.py"));
}

/* The ways in which python's libraries start a process that belongs to another one. */
static void find_role(const struct identity_source *source, struct command *command)
{
	const char *what = command->what;

	if (command->kind == IDENTITY_TEXT && strstr(what, "from multiprocessing.spawn import"))
		command->role = "spawn";
	else if (command->kind == IDENTITY_TEXT &&
		 strstr(what, "from multiprocessing.forkserver import"))
		command->role = "forkserver";
	else if (command->kind == IDENTITY_TEXT &&
		 strstr(what, "from multiprocessing.resource_tracker import"))
		command->role = "tracker";
	else if (command->kind == IDENTITY_MODULE &&
		 ends_with(what, "loky.backend.popen_loky_posix"))
		command->role = "loky";
	else if (command->kind == IDENTITY_SCRIPT && is_ray_worker(what))
		command->role = "ray";
	else
		return;
	command->kind = IDENTITY_CHILD;
	command->role_name = option_value(source, command->arguments, "--process-name");
}

static bool is_kernel(const struct command *command)
{
	if (command->kind == IDENTITY_MODULE)
		return !strcmp(command->what, "ipykernel_launcher") ||
		       !strcmp(command->what, "ipykernel");
	return command->kind == IDENTITY_SCRIPT &&
	       !strcmp(base_name(command->what), "ipykernel_launcher.py");
}

void command_read(const struct identity_source *source, struct command *ret_command)
{
	const char *executable = source->executable;

	if (!executable || !*executable)
		executable = source->argc > 0 ? source->argv[0] : "";
	*ret_command = (struct command){
		.kind = IDENTITY_EXECUTABLE,
		.what = executable,
		.role_name = "",
		.interpreter = "",
		.arguments = source->argc > 0 ? 1 : 0,
	};
	if (!is_interpreter(base_name(executable))) {
		/* A frozen program's own way to spawn. */
		if (source->argc > 1 && !strcmp(source->argv[1], "--multiprocessing-fork")) {
			ret_command->kind = IDENTITY_CHILD;
			ret_command->role = "spawn";
		}
		return;
	}
	ret_command->interpreter = base_name(executable);
	ret_command->what = "";
	read_python(source, ret_command);
	find_role(source, ret_command);
	if (source->notebook && is_kernel(ret_command)) {
		ret_command->kind = IDENTITY_NOTEBOOK;
		ret_command->what = source->notebook;
	}
}

/* An option's name without its value: `--lr=1` and `-n5` are `--lr` and `-n`. 0: not an option. */
static size_t option_length(const char *word)
{
	size_t length;

	if (word[0] != '-' || !word[1] || strchr("0123456789.", word[1]))
		return 0;
	length = strcspn(word, "=");
	if (word[1] != '-')
		while (length > 2 && strchr("0123456789.,:", word[length - 1]))
			length--;
	return length;
}

static int compare_words(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

void command_shape(int argc, const char *const *argv, int first, struct digest_state *state)
{
	uint64_t options[IDENTITY_OPTIONS_MAX];
	size_t count = 0, unique = 0;

	for (int i = first; i < argc && count < IDENTITY_OPTIONS_MAX; i++) {
		uint8_t digest[DIGEST_SIZE];
		size_t length = option_length(argv[i]);

		if (!strcmp(argv[i], "--"))
			break;
		if (!length)
			continue;
		digest_of(argv[i], length, digest);
		memcpy(&options[count++], digest, sizeof(options[0]));
	}
	qsort(options, count, sizeof(options[0]), compare_words);
	for (size_t i = 0; i < count; i++)
		if (!i || options[i] != options[i - 1])
			options[unique++] = options[i];
	digest_update(state, &unique, sizeof(unique));
	digest_update(state, options, unique * sizeof(options[0]));
}
