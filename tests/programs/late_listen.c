/* A library for LD_PRELOAD with which a socket is bound for a while before it is served. */
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#define LATE_US 200000

__attribute__((visibility("default"))) int listen(int fd, int backlog)
{
	int (*next)(int, int);

	*(void **)&next = dlsym(RTLD_NEXT, "listen");
	usleep(LATE_US);
	return next(fd, backlog);
}
