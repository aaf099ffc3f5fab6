/* The kind of a start: all that a python reads or inherits before its first import, and that could
 * have it import something else or otherwise. Runs in `hearth run --spare` and `hearth spare
 * start`. What cannot be given to a process that already runs has to be the same. */
#include "spare/kind.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILE_ROOM 16384
#define MOST_ENTRIES 4096
#define ASK_PERSONALITY 0xffffffff /* personality(2) */
#define IO_WHO_PROCESS 1           /* linux/ioprio.h, which older headers lack */
#define MOST_NODES 4096            /* of memory */

const char *const kind_harmless[] = {"PWD", "OLDPWD", "SHLVL", "_", "WINDOWID", "SSH_CLIENT",
	"SSH_CONNECTION", "SSH_TTY", "XDG_SESSION_ID", "HEARTH_LOG_LEVEL", NULL};

/* The lines of /proc/self/status that are inherited (proc(5)). */
static const char *const status_lines[] = {
	"Uid:", "Gid:", "Groups:", "SigBlk:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:",
	"NoNewPrivs:", "Seccomp:", "Cpus_allowed:", "Mems_allowed:"};

/* Files of /proc/self whose whole text is. */
static const char *const inherited_files[] = {
	"cgroup", "oom_score_adj", "coredump_filter", "attr/current"};

static const char *const namespaces[] = {
	"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

bool kind_is_harmless(const char *entry)
{
	for (size_t i = 0; kind_harmless[i]; i++) {
		size_t length = strlen(kind_harmless[i]);

		if (!strncmp(entry, kind_harmless[i], length) && entry[length] == '=')
			return true;
	}
	return false;
}

/* A whole small file of /proc; empty where it cannot be read. */
static void read_file(const char *path, char ret_text[FILE_ROOM])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t size = 0;
	ssize_t got = 1;

	while (fd >= 0 && got > 0 && size < FILE_ROOM - 1) {
		got = read(fd, ret_text + size, FILE_ROOM - 1 - size);
		size += got > 0 ? (size_t)got : 0;
	}
	ret_text[size] = '\0';
	if (fd >= 0)
		close(fd);
}

static void add_status(struct text *kind)
{
	char text[FILE_ROOM];
	char *rest = text, *line;

	read_file("/proc/self/status", text);
	while ((line = strsep(&rest, "\n")))
		for (size_t i = 0; i < COUNT(status_lines); i++)
			if (!strncmp(line, status_lines[i], strlen(status_lines[i])))
				text_add_word(kind, line);
}

static void add_limits(struct text *kind)
{
	for (int i = 0; i < RLIMIT_NLIMITS; i++) {
		struct rlimit limit = {0};

		getrlimit((__rlimit_resource_t)i, &limit);
		text_add_format(kind, "limit %d %ju %ju", i, (uintmax_t)limit.rlim_cur,
			(uintmax_t)limit.rlim_max);
	}
}

static void add_namespaces(struct text *kind)
{
	for (size_t i = 0; i < COUNT(namespaces); i++) {
		char path[64], value[64];
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/ns/%s", namespaces[i]);
		length = readlink(path, value, sizeof(value) - 1);
		value[length < 0 ? 0 : length] = '\0';
		text_add_word(kind, value);
	}
}

static void add_memory_policy(struct text *kind)
{
	unsigned char nodes[MOST_NODES / 8] = {0};
	int mode = -1;

	syscall(SYS_get_mempolicy, &mode, nodes, (unsigned long)MOST_NODES, NULL, 0ul);
	text_add_format(kind, "memory %d huge %d", mode, prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	text_add(kind, nodes, sizeof(nodes));
}

static void add_files(struct text *kind)
{
	for (size_t i = 0; i < COUNT(inherited_files); i++) {
		char path[64], text[FILE_ROOM];

		snprintf(path, sizeof(path), "/proc/self/%s", inherited_files[i]);
		read_file(path, text);
		text_add_word(kind, text);
	}
}

static void add_process(struct text *kind)
{
	struct stat root = {0};
	struct sched_param priority = {0};
	int policy = sched_getscheduler(0);

	add_status(kind);
	add_limits(kind);
	add_namespaces(kind);
	stat("/", &root);
	sched_getparam(0, &priority);
	text_add_format(kind, "root %ju %ju", (uintmax_t)root.st_dev, (uintmax_t)root.st_ino);
	text_add_format(kind, "nice %d policy %d %d io %ld", getpriority(PRIO_PROCESS, 0), policy,
		priority.sched_priority, syscall(SYS_ioprio_get, IO_WHO_PROCESS, 0));
	text_add_format(kind, "personality %x slack %d", (unsigned)personality(ASK_PERSONALITY),
		prctl(PR_GET_TIMERSLACK));
	add_memory_policy(kind);
	add_files(kind);
}

static int by_text(const void *one, const void *other)
{
	return strcmp(*(char *const *)one, *(char *const *)other);
}

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

/* A relative entry of PYTHONPATH means another folder in each. */
static bool has_relative_path(const char *entry)
{
	static const char name[] = "PYTHONPATH=";
	const char *list = entry + sizeof(name) - 1;

	if (strncmp(entry, name, sizeof(name) - 1) || !*list)
		return false;
	for (;;) {
		if (*list != '/')
			return true;
		list = strchr(list, ':');
		if (!list++)
			return false;
	}
}

static int add_environment(char **environment, struct text *kind)
{
	char **sorted = calloc(MOST_ENTRIES, sizeof(*sorted));
	size_t count = 0;
	int rc = 0;

	if (!sorted)
		return -ENOMEM;
	for (char **entry = environment; !rc && *entry; entry++) {
		if (!strchr(*entry, '=') || count == MOST_ENTRIES || has_relative_path(*entry))
			rc = -ENOTSUP;
		else
			sorted[count++] = *entry;
	}
	qsort(sorted, count, sizeof(*sorted), by_text);
	for (size_t i = 0; !rc && i < count; i++) {
		size_t length = name_length(sorted[i]);

		/* A name that is there twice: which one counts is each reader's own choice. */
		if (i && length == name_length(sorted[i - 1]) &&
			!strncmp(sorted[i], sorted[i - 1], length))
			rc = -ENOTSUP;
		if (!kind_is_harmless(sorted[i]))
			text_add_word(kind, sorted[i]);
	}
	free(sorted);
	return rc;
}

int kind_make(const struct command_line *line, char **environment, struct text *ret_kind)
{
	struct text kind = {0};
	struct stat info;
	int rc;

	if (stat(line->python, &info))
		return -errno;
	text_add_word(&kind, line->python);
	text_add_format(&kind, "%ju %ju %ju %jd.%09ld", (uintmax_t)info.st_dev,
		(uintmax_t)info.st_ino, (uintmax_t)info.st_size, (intmax_t)info.st_ctim.tv_sec,
		info.st_ctim.tv_nsec);
	for (int i = 0; i < line->flag_count; i++)
		text_add_word(&kind, line->flags[i]);
	text_add_word(&kind, "");
	rc = add_environment(environment, &kind);
	text_add_word(&kind, "");
	add_process(&kind);
	rc = rc ? rc : kind.rc;
	if (rc) {
		text_done(&kind);
		return rc;
	}
	*ret_kind = kind;
	return 0;
}

uint64_t kind_digest(const struct text *kind)
{
	uint64_t digest = 0xcbf29ce484222325u; /* FNV-1a's */

	for (size_t i = 0; i < kind->size; i++)
		digest = (digest ^ (unsigned char)kind->bytes[i]) * 0x100000001b3u;
	return digest;
}

uint64_t kind_ignored_signals(void)
{
	uint64_t ignored = 0;

	for (int number = 1; number < NSIG; number++) {
		struct sigaction action;

		if (!sigaction(number, NULL, &action) && action.sa_handler == SIG_IGN &&
			number < 64)
			ignored |= 1ull << number;
	}
	return ignored;
}
