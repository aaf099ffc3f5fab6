/* Threads. Runs in the user's program, in our constructor or inside the loader; must not disturb
 * the caller's signal mask for longer than the creation takes. */
#include "preload/threads.h"

#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Weak and by its oldest version: before glibc 2.34 it is in libpthread. */
extern __typeof__(pthread_create) old_pthread_create __attribute__((weak));
__asm__(".symver old_pthread_create, pthread_create@GLIBC_2.2.5");

/* What pthread_atfork and atexit are made of (the latter by the Itanium C++ ABI, 3.3.5); their last
 * argument, the object, is NULL: never unloaded. */
int __register_atfork(
	void (*before)(void), void (*in_parent)(void), void (*in_child)(void), void *object);
int __cxa_atexit(void (*function)(void *), void *argument, void *object);

/* The size of the kernel's signal set, which rt_sigprocmask wants to be told. */
#define KERNEL_SIGSET_BYTES 8

/* Longer than what comes before the state in /proc/PID/stat (man 5 proc). */
#define STAT_MAX 128

int threads_start(void *(*function)(void *), void *argument)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, kept;
	int error;

	if (!old_pthread_create)
		return ENOSYS;
	sigfillset(&all);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &kept, KERNEL_SIGSET_BYTES);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = old_pthread_create(&thread, &attributes, function, argument);
	pthread_attr_destroy(&attributes);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &kept, NULL, KERNEL_SIGSET_BYTES);
	return error;
}

void threads_at_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
	__register_atfork(before, in_parent, in_child, NULL);
}

void threads_at_exit(void (*function)(void *))
{
	__cxa_atexit(function, NULL, NULL);
}

/* The main thread stays a zombie while others live. Its task's file is that of the process. */
static bool has_main_ended(void)
{
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char text[STAT_MAX], *name_end;
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return false;
	text[length] = '\0';
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && name_end[2] == 'Z';
}

bool threads_are_last(unsigned int count)
{
	struct stat status;

	/* A folder has two links, and here one more for each thread. */
	return has_main_ended() && !status_of_path("/proc/self/task", &status) &&
	       status.st_nlink <= 2 + 1 + (nlink_t)count;
}
