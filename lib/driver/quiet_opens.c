/* The hooks of a quiet copy that open, name and close descriptors. They run on whatever thread is
 * inside the copy, and note only what is opened for the speculation; a call that is not is passed
 * on as it is. */
#include "driver/quiet_opens.h"

#include "driver/quiet.h"
#include "driver/quiet_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Weak and by its oldest version: before glibc 2.34 it is in librt. */
extern __typeof__(shm_open) old_shm_open __attribute__((weak));
__asm__(".symver old_shm_open, shm_open@GLIBC_2.2.5");

/* What a file gets that fopen makes, before the umask. */
#define FILE_MODE 0666

static int end(int fd)
{
	fd = quiet_files_add(fd);
	quiet_files_end();
	return fd;
}

static int end_two(int outcome, int ends[2])
{
	if (!outcome) {
		ends[0] = quiet_files_add(ends[0]);
		ends[1] = quiet_files_add(ends[1]);
	}
	quiet_files_end();
	return outcome;
}

/* TYPES are the function's parameters with their parentheses, CALL is the call of libc's own. */
#define OPENING_HOOK(name, TYPES, CALL)                                                            \
	static int hook_##name TYPES                                                               \
	{                                                                                          \
		quiet_files_begin();                                                               \
		return end(CALL);                                                                  \
	}

OPENING_HOOK(eventfd, (unsigned int value, int flags), eventfd(value, flags))
OPENING_HOOK(epoll_create1, (int flags), epoll_create1(flags))
OPENING_HOOK(epoll_create, (int size), epoll_create(size))
OPENING_HOOK(socket, (int domain, int type, int protocol), socket(domain, type, protocol))
OPENING_HOOK(dup, (int fd), dup(fd))
OPENING_HOOK(mkstemp, (char *template), mkstemp(template))
OPENING_HOOK(mkostemp, (char *template, int flags), mkostemp(template, flags))
OPENING_HOOK(creat, (const char *path, mode_t mode), creat(path, mode))
OPENING_HOOK(timerfd_create, (int clock, int flags), timerfd_create(clock, flags))
OPENING_HOOK(inotify_init, (void), inotify_init())
OPENING_HOOK(inotify_init1, (int flags), inotify_init1(flags))

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

static int hook_open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	quiet_files_begin();
	return end(open(path, flags, mode));
}

static int hook_openat(int folder, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	quiet_files_begin();
	return end(openat(folder, path, flags, mode));
}

/* May wait for ever, so the turn is taken afterwards. */
static int end_accept(int fd)
{
	if (fd < 0 || !quiet_is_working())
		return fd;
	quiet_files_begin();
	return end(fd);
}

static int hook_accept(int fd, struct sockaddr *address, socklen_t *length)
{
	return end_accept(accept(fd, address, length));
}

static int hook_accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
	return end_accept(accept4(fd, address, length, flags));
}

static int hook_shm_open(const char *name, int flags, mode_t mode)
{
	quiet_files_begin();
	return end(old_shm_open(name, flags, mode));
}

static int hook_pipe(int ends[2])
{
	quiet_files_begin();
	return end_two(pipe(ends), ends);
}

static int hook_pipe2(int ends[2], int flags)
{
	quiet_files_begin();
	return end_two(pipe2(ends, flags), ends);
}

static int hook_socketpair(int domain, int type, int protocol, int ends[2])
{
	quiet_files_begin();
	return end_two(socketpair(domain, type, protocol, ends), ends);
}

/* To a number that the copy names: it stays. */
static int end_named(int fd)
{
	if (fd >= 0 && quiet_is_working())
		quiet_files_note(fd);
	quiet_files_end();
	return fd;
}

static int hook_dup2(int from, int to)
{
	quiet_files_begin();
	return end_named(dup2(from, to));
}

static int hook_dup3(int from, int to, int flags)
{
	quiet_files_begin();
	return end_named(dup3(from, to, flags));
}

/* By number: libc's function has another version in each of its ages. */
static int hook_fcntl(int fd, int command, ...)
{
	va_list arguments;
	long argument;

	va_start(arguments, command);
	argument = va_arg(arguments, long);
	va_end(arguments);
	if (command != F_DUPFD && command != F_DUPFD_CLOEXEC)
		return (int)syscall(SYS_fcntl, fd, command, argument);
	quiet_files_begin();
	return end((int)syscall(SYS_fcntl, fd, command, argument));
}

static int hook_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	int outcome = -1;

	quiet_files_begin();
	if (quiet_files_are_names_refused())
		errno = EADDRINUSE;
	else
		outcome = bind(fd, address, length);
	quiet_files_end();
	return outcome;
}

/* Whoever closes it: a driver's thread may close what the quiet one opened. */
static int hook_close(int fd)
{
	int outcome;

	quiet_files_begin();
	quiet_files_forget(fd);
	outcome = close(fd);
	quiet_files_end();
	return outcome;
}

/* As fopen takes its mode. */
static int flags_of(const char *mode)
{
	bool is_both = strchr(mode, '+');
	int flags = *mode == 'r' ? O_RDONLY : O_WRONLY | O_CREAT;

	if (is_both)
		flags = (flags & O_CREAT) | O_RDWR;
	if (*mode != 'r')
		flags |= *mode == 'a' ? O_APPEND : O_TRUNC;
	if (strchr(mode, 'e'))
		flags |= O_CLOEXEC;
	return strchr(mode, 'x') ? flags | O_EXCL : flags;
}

static FILE *hook_fopen(const char *path, const char *mode)
{
	FILE *file;
	int fd;

	if (!quiet_is_working())
		return fopen(path, mode);
	fd = hook_open(path, flags_of(mode), FILE_MODE);
	if (fd < 0)
		return NULL;
	file = fdopen(fd, mode);
	if (!file)
		hook_close(fd);
	return file;
}

static int hook_fclose(FILE *file)
{
	int outcome;

	quiet_files_begin();
	quiet_files_forget(fileno(file));
	outcome = fclose(file);
	quiet_files_end();
	return outcome;
}

static DIR *hook_opendir(const char *path)
{
	DIR *folder;
	int fd;

	if (!quiet_is_working())
		return opendir(path);
	fd = hook_open(path, O_RDONLY | O_NONBLOCK | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	folder = fdopendir(fd);
	if (!folder)
		hook_close(fd);
	return folder;
}

static int hook_closedir(DIR *folder)
{
	int outcome;

	quiet_files_begin();
	quiet_files_forget(dirfd(folder));
	outcome = closedir(folder);
	quiet_files_end();
	return outcome;
}

/* The words of a system call, which are read whether the caller gave them or not, as libc's own
 * function does. */
static long hook_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	switch (number) {
	case SYS_open:
	case SYS_openat:
	case SYS_creat:
	case SYS_socket:
	case SYS_eventfd:
	case SYS_eventfd2:
	case SYS_epoll_create:
	case SYS_epoll_create1:
	case SYS_dup:
	case SYS_memfd_create:
	case SYS_timerfd_create:
	case SYS_inotify_init:
	case SYS_inotify_init1:
		quiet_files_begin();
		return end((int)syscall(number, a, b, c, d, e, f));
	case SYS_accept:
	case SYS_accept4:
		return end_accept((int)syscall(number, a, b, c, d, e, f));
	case SYS_pipe:
		return hook_pipe((int *)a);
	case SYS_pipe2:
		return hook_pipe2((int *)a, (int)b);
	case SYS_close:
		return hook_close((int)a);
	case SYS_bind:
		return hook_bind((int)a, (const struct sockaddr *)b, (socklen_t)c);
	default:
		return syscall(number, a, b, c, d, e, f);
	}
}

static const struct import_hook hooks[] = {
	{"eventfd", (void *)hook_eventfd},
	{"epoll_create1", (void *)hook_epoll_create1},
	{"epoll_create", (void *)hook_epoll_create},
	{"socket", (void *)hook_socket},
	{"accept", (void *)hook_accept},
	{"accept4", (void *)hook_accept4},
	{"dup", (void *)hook_dup},
	{"mkstemp", (void *)hook_mkstemp},
	{"mkostemp", (void *)hook_mkostemp},
	{"creat", (void *)hook_creat},
	{"timerfd_create", (void *)hook_timerfd_create},
	{"inotify_init", (void *)hook_inotify_init},
	{"inotify_init1", (void *)hook_inotify_init1},
	{"open", (void *)hook_open},
	{"open64", (void *)hook_open},
	{"openat", (void *)hook_openat},
	{"openat64", (void *)hook_openat},
	{"creat64", (void *)hook_creat},
	{"mkostemp64", (void *)hook_mkostemp},
	{"mkstemp64", (void *)hook_mkstemp},
	{"pipe", (void *)hook_pipe},
	{"pipe2", (void *)hook_pipe2},
	{"socketpair", (void *)hook_socketpair},
	{"dup2", (void *)hook_dup2},
	{"dup3", (void *)hook_dup3},
	{"fcntl", (void *)hook_fcntl},
	{"fcntl64", (void *)hook_fcntl},
	{"bind", (void *)hook_bind},
	{"close", (void *)hook_close},
	{"fopen", (void *)hook_fopen},
	{"fopen64", (void *)hook_fopen},
	{"fclose", (void *)hook_fclose},
	{"opendir", (void *)hook_opendir},
	{"closedir", (void *)hook_closedir},
	{"syscall", (void *)hook_syscall},
};
#define HOOKS (sizeof(hooks) / sizeof(*hooks))

int quiet_opens_redirect(const struct link_map *map)
{
	const struct import_hook shared_memory = {"shm_open", (void *)hook_shm_open};
	int outcome = imports_redirect(map, hooks, HOOKS);

	if (outcome >= 0 && old_shm_open)
		outcome = imports_redirect(map, &shared_memory, 1);
	return outcome;
}

void *quiet_opens_find(const char *name)
{
	for (size_t i = 0; i < HOOKS; i++)
		if (!strcmp(hooks[i].name, name))
			return hooks[i].replacement;
	return NULL;
}
