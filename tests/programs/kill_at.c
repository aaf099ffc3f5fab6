/* Preloaded into hearthd by tests: the process dies by SIGKILL just before or after the Nth call of
 * one of libc's functions, counted from the first connection it takes.
 *
 *   KILL_AT=FUNCTION:N:before|after    accept4 getsockopt recvmsg epoll_ctl memfd_create fcntl
 *                                      ftruncate pread pwrite sendmsg close */
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

static char wanted[32], side[16];
static int wanted_count, count;
static bool is_counting;

__attribute__((constructor)) static void read_setting(void)
{
	const char *text = getenv("KILL_AT");

	if (!text || sscanf(text, "%31[^:]:%d:%15s", wanted, &wanted_count, side) != 3)
		wanted[0] = 0;
}

static bool is_now(const char *name)
{
	return is_counting && !strcmp(wanted, name) && ++count == wanted_count;
}

#define AROUND(name, type, call)                                                                   \
	do {                                                                                       \
		bool now_ = is_now(name);                                                          \
		type result_;                                                                      \
		if (now_ && !strcmp(side, "before"))                                               \
			raise(SIGKILL);                                                            \
		result_ = (call);                                                                  \
		if (now_)                                                                          \
			raise(SIGKILL);                                                            \
		return result_;                                                                    \
	} while (0)

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

SHOWN int accept4(int fd, struct sockaddr *address, socklen_t *size, int flags)
{
	is_counting = true;
	AROUND("accept4", int, REAL(accept4)(fd, address, size, flags));
}

SHOWN int getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	AROUND("getsockopt", int, REAL(getsockopt)(fd, level, name, value, size));
}

SHOWN ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	AROUND("recvmsg", ssize_t, REAL(recvmsg)(fd, message, flags));
}

SHOWN ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	AROUND("sendmsg", ssize_t, REAL(sendmsg)(fd, message, flags));
}

SHOWN int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	AROUND("epoll_ctl", int, REAL(epoll_ctl)(epoll, operation, fd, event));
}

SHOWN ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset)
{
	AROUND("pwrite", ssize_t, REAL(pwrite64)(fd, bytes, size, offset));
}

SHOWN ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset)
{
	AROUND("pread", ssize_t, REAL(pread64)(fd, bytes, size, offset));
}

SHOWN int close(int fd)
{
	AROUND("close", int, REAL(close)(fd));
}

SHOWN long syscall(long number, ...)
{
	const char *name = number == SYS_memfd_create ? "memfd_create"
			   : number == SYS_fcntl      ? "fcntl"
			   : number == SYS_ftruncate  ? "ftruncate"
						      : "";
	long words[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		words[i] = va_arg(args, long);
	va_end(args);
	AROUND(name, long,
		REAL(syscall)(number, words[0], words[1], words[2], words[3], words[4], words[5]));
}
