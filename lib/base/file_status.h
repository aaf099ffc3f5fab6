/* stat and fstat by system call: glibc has functions of these names only since 2.33, and code that
 * is loaded into programs must run on older ones. x86-64, where the kernel's struct is libc's. */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* 0, or -1 and errno. */
static inline int file_status(int fd, struct stat *ret_status)
{
	return (int)syscall(SYS_fstat, fd, ret_status);
}

/* Same; flags as fstatat's. */
static inline int file_status_at(int folder, const char *path, int flags, struct stat *ret_status)
{
	return (int)syscall(SYS_newfstatat, folder, path, ret_status, flags);
}
