/* What fstat, stat and fstatat say. As system calls: since glibc 2.33 the functions have symbol
 * versions of their own, and libhearth.so must load on 2.17. On x86-64 the kernel's struct stat is
 * the C library's. 0, or -1 and errno. */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int status_of_fd(int fd, struct stat *ret_status)
{
	return (int)syscall(SYS_fstat, fd, ret_status);
}

static inline int status_of_path(const char *path, struct stat *ret_status)
{
	return (int)syscall(SYS_stat, path, ret_status);
}

/* Of an entry of a folder itself, also where it is a symlink. */
static inline int status_of_entry(int folder, const char *name, struct stat *ret_status)
{
	return (int)syscall(SYS_newfstatat, folder, name, ret_status, AT_SYMLINK_NOFOLLOW);
}
