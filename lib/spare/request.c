/* A client's request. Made in `hearth run --spare`. The text is a length, the kind, and then words
 * that bootstrap.py reads in this order, each with its NUL. */
#include "spare/request.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const kind_names[] = {[COMMAND_LINE_SCRIPT] = "script",
	[COMMAND_LINE_MODULE] = "module",
	[COMMAND_LINE_CODE] = "code"};

static size_t count_words(char **words)
{
	size_t count = 0;

	while (words[count])
		count++;
	return count;
}

static void add_words(struct text *text, char **words, const char *first)
{
	text_add_format(text, "%zu", count_words(words) + (first ? 1 : 0));
	if (first)
		text_add_word(text, first);
	for (; *words; words++)
		text_add_word(text, *words);
}

/* sys.argv[0], as python has it before a module is found. */
static const char *first_argument(const struct command_line *line)
{
	return line->kind == COMMAND_LINE_CODE     ? "-c"
	       : line->kind == COMMAND_LINE_MODULE ? "-m"
						   : line->target;
}

static int by_number(const void *one, const void *other)
{
	return *(const int *)one - *(const int *)other;
}

/* The descriptors that an exec would have left open. */
static int find_descriptors(struct request *request)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int rc = 0;

	if (!dir)
		return -errno;
	while (!rc && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name), flags;

		if (entry->d_name[0] == '.' || fd == dirfd(dir))
			continue;
		flags = fcntl(fd, F_GETFD);
		if (flags < 0 || flags & FD_CLOEXEC)
			continue;
		if (request->fd_count == REQUEST_FDS)
			rc = -ENOTSUP;
		else
			request->numbers[request->fd_count++] = fd;
	}
	closedir(dir);
	qsort(request->numbers + REQUEST_OWN_FDS, request->fd_count - REQUEST_OWN_FDS,
		sizeof(request->numbers[0]), by_number);
	memcpy(request->fds + REQUEST_OWN_FDS, request->numbers + REQUEST_OWN_FDS,
		sizeof(request->fds) - REQUEST_OWN_FDS * sizeof(request->fds[0]));
	return rc;
}

static mode_t read_umask(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return mask;
}

static void write_text(const struct command_line *line, const struct request *request,
	bool leads_group, struct text *text)
{
	text_add_word(text, kind_names[line->kind]);
	text_add_word(text, line->target);
	text_add_format(text, "%u", (unsigned)read_umask());
	text_add_format(text, "%" PRIu64, kind_ignored_signals());
	text_add_format(text, "%d", leads_group);
	add_words(text, line->rest, first_argument(line));
	add_words(text, line->words, NULL);
	text_add_format(text, "%zu", request->fd_count - REQUEST_OWN_FDS);
	for (size_t i = REQUEST_OWN_FDS; i < request->fd_count; i++)
		text_add_format(text, "%d", request->numbers[i]);
	add_words(text, environ, NULL);
}

static int write_file(int fd, const struct text *text)
{
	size_t written = 0;

	while (written < text->size) {
		ssize_t got =
			pwrite(fd, text->bytes + written, text->size - written, (off_t)written);

		if (got <= 0)
			return got ? -errno : -EIO;
		written += (size_t)got;
	}
	return 0;
}

int request_make(const struct command_line *line, const struct text *kind, bool has_terminal,
	struct request *ret_request)
{
	struct request *request = ret_request;
	struct text text = {0};
	uint32_t length = (uint32_t)kind->size;
	int rc = 0;

	request->fd_count = REQUEST_OWN_FDS;
	request->fds[1] = -1;
	request->fds[0] = (int)syscall(SYS_memfd_create, "hearth-request", MFD_CLOEXEC);
	if (request->fds[0] < 0)
		return -errno;
	request->fds[1] = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (request->fds[1] < 0)
		return -errno;
	rc = find_descriptors(request);
	if (rc)
		return rc;
	text_add(&text, &length, sizeof(length));
	text_add(&text, kind->bytes, kind->size);
	/* A group that is not its holder's, for job control. */
	write_text(line, request, has_terminal || getpgrp() == getpid(), &text);
	rc = text.rc ? text.rc : write_file(request->fds[0], &text);
	text_done(&text);
	return rc;
}

void request_name(int fd, char ret_name[SPARE_NAME_SIZE])
{
	char words[PATH_MAX + 16];
	const char *target, *slash;
	uint32_t length;
	ssize_t got =
		pread(fd, &length, sizeof(length), 0) == sizeof(length)
			? pread(fd, words, sizeof(words) - 1, (off_t)(sizeof(length) + length))
			: -1;

	memset(ret_name, 0, SPARE_NAME_SIZE);
	if (got <= 0)
		return;
	words[got] = '\0';
	target = words + strlen(words) + 1;
	if (target >= words + got || !strcmp(words, kind_names[COMMAND_LINE_CODE]))
		return;
	slash = strrchr(target, '/');
	target = slash && slash[1] ? slash + 1 : target;
	memcpy(ret_name, target, strnlen(target, SPARE_NAME_SIZE - 1));
}

void request_done(struct request *request)
{
	for (int i = 0; i < REQUEST_OWN_FDS; i++) {
		if (request->fds[i] >= 0)
			close(request->fds[i]);
		request->fds[i] = -1;
	}
}
