/* Which program this is. Runs in the user's process, once, from the preload's constructor or the
 * first lookup of cuInit, and in tools. Must never consume what the program will read (pipes,
 * FIFOs, the offset of a descriptor), never allocate, and never fail for an odd command line. */
#include "profile/identity.h"

#include "base/status.h"
#include "base/utf8.h"
#include "profile/command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const kind_names[IDENTITY_KIND_COUNT] = {
	[IDENTITY_EXECUTABLE] = "executable",
	[IDENTITY_SCRIPT] = "script",
	[IDENTITY_MODULE] = "module",
	[IDENTITY_TEXT] = "text",
	[IDENTITY_STDIN] = "stdin",
	[IDENTITY_CHILD] = "child",
	[IDENTITY_NOTEBOOK] = "notebook",
};

const char *identity_kind_name(enum identity_kind kind)
{
	if ((unsigned int)kind >= IDENTITY_KIND_COUNT || !kind_names[kind])
		return "unknown";
	return kind_names[kind];
}

/* Appends what a terminal may see; what it may not becomes '?'. Cuts off whole characters at the
 * end of the room. */
static void name_add(char name[IDENTITY_NAME_SIZE], const char *text)
{
	size_t length = strlen(name);

	while (*text) {
		uint32_t rune = 0;
		size_t bytes = utf8_next(text, strnlen(text, UTF8_MAX), &rune);
		bool is_kept = bytes && utf8_is_harmless(rune);

		if (length + (is_kept ? bytes : 1) >= IDENTITY_NAME_SIZE)
			return;
		if (is_kept)
			memcpy(name + length, text, bytes);
		else
			name[length] = '?';
		length += is_kept ? bytes : 1;
		text += bytes ? bytes : 1;
	}
}

static void name_add_base(char name[IDENTITY_NAME_SIZE], const char *path)
{
	const char *slash = strrchr(path, '/');

	name_add(name, slash && slash[1] ? slash + 1 : path);
}

/* Relative paths are meant from the process's own folder. */
static bool join(const char *folder, const char *path, char ret_path[PATH_MAX])
{
	int length;

	if (!folder || path[0] == '/')
		length = snprintf(ret_path, PATH_MAX, "%s", path);
	else
		length = snprintf(ret_path, PATH_MAX, "%s/%s", folder, path);
	return length > 0 && length < PATH_MAX;
}

/* Feeds the beginning and the size of a regular file, leaving the descriptor's offset alone. */
static bool digest_content(int fd, struct digest_state *state)
{
	uint8_t buffer[8192];
	struct stat file;
	uint64_t size;
	off_t at = 0;

	if (status_of_fd(fd, &file) || !S_ISREG(file.st_mode))
		return false;
	size = (uint64_t)file.st_size;
	digest_text(state, "content");
	digest_update(state, &size, sizeof(size));
	while (at < IDENTITY_CONTENT_MAX) {
		ssize_t got = pread(fd, buffer, sizeof(buffer), at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		digest_update(state, buffer, (size_t)got);
		at += got;
	}
	return true;
}

static void digest_script(
	const struct identity_source *source, const char *script, struct digest_state *state)
{
	char path[PATH_MAX], real[PATH_MAX];
	struct stat file;
	bool is_done = false;

	if (join(source->folder, script, path)) {
		if (realpath(path, real)) {
			digest_text(state, "path");
			digest_text(state, real);
			return;
		}
		/* Asked before opening: to open a FIFO would be seen by its writer. */
		if (!status_of_path(path, &file) && S_ISREG(file.st_mode)) {
			int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

			is_done = fd >= 0 && digest_content(fd, state);
			if (fd >= 0)
				close(fd);
		}
	}
	if (!is_done) {
		digest_text(state, "name");
		digest_text(state, script);
	}
}

/* `-m train` is another program in another folder if it is that folder's train. */
static void digest_module(
	const struct identity_source *source, const char *module, struct digest_state *state)
{
	char local[PATH_MAX], path[PATH_MAX], real[PATH_MAX];
	int top = (int)strcspn(module, ".");
	struct stat file;

	digest_text(state, module);
	if (!top || snprintf(local, sizeof(local), "%.*s.py", top, module) >= PATH_MAX ||
		!join(source->folder, local, path))
		return;
	if (status_of_path(path, &file)) {
		path[strlen(path) - strlen(".py")] = 0;
		if (status_of_path(path, &file) || !S_ISDIR(file.st_mode))
			return;
	}
	if (realpath(path, real))
		digest_text(state, real);
}

static void digest_without_numbers(const char *text, struct digest_state *state)
{
	char plain[IDENTITY_NAME_SIZE];
	size_t length = 0;

	for (; *text && length < sizeof(plain) - 1; text++)
		if (*text < '0' || *text > '9')
			plain[length++] = *text;
	plain[length] = 0;
	digest_text(state, plain);
}

bool identity_is_child(const struct identity_source *source)
{
	struct command command;

	command_read(source, &command);
	return command.kind == IDENTITY_CHILD;
}

static void compute_child(const struct identity_source *source, const struct command *command,
	struct digest_state *state, char name[IDENTITY_NAME_SIZE])
{
	static const uint8_t unknown[DIGEST_SIZE];

	digest_update(state, source->parent ? source->parent->digest : unknown, DIGEST_SIZE);
	digest_text(state, command->role);
	digest_without_numbers(command->role_name, state);
	name_add(name, source->parent ? source->parent->name : command->interpreter);
	name_add(name, " (");
	name_add(name, command->role);
	name_add(name, ")");
}

/* A fork server's worker is a fork of it, with its command line. It is what it has inherited. */
static bool is_fork_of_server(const struct identity_source *source, const struct command *command)
{
	static const char role[] = " (forkserver)";
	const struct identity *parent = source->parent;
	size_t length = parent ? strlen(parent->name) : 0;

	return command->kind == IDENTITY_CHILD && !strcmp(command->role, "forkserver") && parent &&
	       parent->kind == IDENTITY_CHILD && length >= strlen(role) &&
	       !strcmp(parent->name + length - strlen(role), role);
}

void identity_compute(const struct identity_source *source, struct identity *ret_identity)
{
	struct digest_state state;
	struct command command;
	char name[IDENTITY_NAME_SIZE] = "";

	command_read(source, &command);
	if (is_fork_of_server(source, &command)) {
		*ret_identity = *source->parent;
		return;
	}
	digest_init(&state);
	digest_text(&state, "hearth identity 1");
	digest_text(&state, identity_kind_name(command.kind));
	switch (command.kind) {
	case IDENTITY_CHILD: /* its options are its parent's business, not its shape */
		compute_child(source, &command, &state, name);
		break;
	case IDENTITY_NOTEBOOK: /* its options name a connection file */
		digest_text(&state, command.what);
		name_add_base(name, command.what);
		break;
	case IDENTITY_SCRIPT:
		digest_script(source, command.what, &state);
		name_add_base(name, command.what);
		break;
	case IDENTITY_MODULE:
		digest_module(source, command.what, &state);
		name_add(name, command.what);
		break;
	case IDENTITY_TEXT:
		digest_text(&state, command.what);
		name_add(name, command.interpreter);
		name_add(name, " -c");
		break;
	case IDENTITY_STDIN:
		if (source->folder || !digest_content(STDIN_FILENO, &state))
			digest_text(&state, "stream");
		name_add(name, command.interpreter);
		name_add(name, " -");
		break;
	default:
		digest_text(&state, command.what);
		name_add_base(name, command.what);
	}
	if (command.kind != IDENTITY_CHILD && command.kind != IDENTITY_NOTEBOOK) {
		digest_text(&state, command.option_letters);
		command_shape(source->argc, source->argv, command.arguments, &state);
	}
	memset(ret_identity, 0, sizeof(*ret_identity));
	digest_final(&state, ret_identity->digest);
	ret_identity->kind = command.kind;
	memcpy(ret_identity->name, name, sizeof(name));
}
