/* Identities of processes, from /proc. Runs in the user's process (for itself and, where it is a
 * spawned child, for its parents) and in tools. Must never keep a descriptor, and never use much of
 * a stack that may be a small thread's: scratch memory is mapped. */
#include "profile/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define COMMAND_LINE_MAX 131072 /* the kernel's limit for one argument, so also for one text */
#define ARGUMENTS_MAX 1024

struct scratch {
	char executable[PATH_MAX];
	char folder[PATH_MAX];
	char line[COMMAND_LINE_MAX + 1];
	const char *argv[ARGUMENTS_MAX];
};

static ssize_t read_file(const char *path, char *buffer, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while (length < size) {
		got = read(fd, buffer + length, size - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	close(fd);
	return (ssize_t)length;
}

static const char *read_link(int pid, const char *which, char buffer[PATH_MAX])
{
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, which);
	length = readlink(path, buffer, PATH_MAX - 1);
	if (length <= 0)
		return NULL;
	buffer[length] = 0;
	return buffer;
}

/* The parent's pid as /proc/PID/stat says it, behind the parenthesised name; 0 where there is none.
 */
static int parent_of(int pid)
{
	char path[64], stat[512];
	const char *end;
	ssize_t length;
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	length = read_file(path, stat, sizeof(stat) - 1);
	if (length <= 0)
		return 0;
	stat[length] = 0;
	end = strrchr(stat, ')');
	if (!end || strlen(end) < strlen(") S 1"))
		return 0;
	/* Not sscanf: its symbol versions are newer than libhearth.so may need. */
	for (end += strlen(") S "); *end >= '0' && *end <= '9'; end++)
		parent = parent * 10 + (*end - '0');
	return parent;
}

static int process_identity(
	int pid, const char *notebook, int depth, struct identity *ret_identity);

/* Fills in the parent of a child; one that cannot be found stays unknown. A child of a kernel has
 * inherited the kernel's notebook in its own environment. */
static const struct identity *find_parent(
	const struct identity_source *source, int pid, int depth, struct identity *parent)
{
	int parent_pid;

	if (depth >= IDENTITY_ANCESTORS_MAX || !identity_is_child(source))
		return NULL;
	parent_pid = pid ? parent_of(pid) : getppid();
	if (parent_pid <= 0 || process_identity(parent_pid, source->notebook, depth + 1, parent))
		return NULL;
	return parent;
}

static int read_process(int pid, const char *notebook, int depth, struct scratch *scratch,
	struct identity *ret_identity)
{
	struct identity_source source = {.argv = scratch->argv, .notebook = notebook};
	struct identity parent;
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	length = read_file(path, scratch->line, COMMAND_LINE_MAX);
	if (length <= 0)
		return length ? (int)length : -ESRCH;
	for (ssize_t at = 0; at < length && source.argc < ARGUMENTS_MAX;) {
		scratch->argv[source.argc++] = scratch->line + at;
		at += (ssize_t)strlen(scratch->line + at) + 1;
	}
	source.executable = read_link(pid, "exe", scratch->executable);
	source.folder = read_link(pid, "cwd", scratch->folder);
	source.parent = find_parent(&source, pid, depth, &parent);
	identity_compute(&source, ret_identity);
	return 0;
}

static int process_identity(int pid, const char *notebook, int depth, struct identity *ret_identity)
{
	struct scratch *scratch = mmap(
		NULL, sizeof(*scratch), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int rc;

	if (scratch == MAP_FAILED)
		return -errno;
	rc = read_process(pid, notebook, depth, scratch, ret_identity);
	munmap(scratch, sizeof(*scratch));
	return rc;
}

int identity_of_process(int pid, const char *notebook, struct identity *ret_identity)
{
	return process_identity(pid, notebook, 0, ret_identity);
}

int identity_of_self(
	int argc, const char *const *argv, const char *notebook, struct identity *ret_identity)
{
	char executable[PATH_MAX];
	struct identity_source source = {.argc = argc, .argv = argv, .notebook = notebook};
	struct identity parent;
	ssize_t length = readlink("/proc/self/exe", executable, sizeof(executable) - 1);

	if (length > 0) {
		executable[length] = 0;
		source.executable = executable;
	}
	source.parent = find_parent(&source, 0, 0, &parent);
	identity_compute(&source, ret_identity);
	return 0;
}
