/* Copies of the driver in one process: opening one, and making room for the next.
 *
 * A second copy must be another file (another inode): the loader takes one inode for one object.
 * And its cuInit fails with 304 while the first one's abstract socket "@cuda-uvmfd-NAMESPACE-PID"
 * is bound (measured on 580.159.04). */
#pragma once

#include <link.h>
#include <stddef.h>

struct driver_copy {
	void *handle; /* from dlopen, RTLD_NOW | RTLD_LOCAL; never closed once cuInit ran in it */
	struct link_map *map;
};

/* Opens the driver's file at an absolute path. Returns 0, or -ELIBACC where the loader refuses it
 * (dlerror has the text). */
int copy_open(const char *path, struct driver_copy *ret_copy);

/* Opens a fresh copy of that file: its bytes in a memfd of its own (a nameless file under one of
 * the folders where memfds may not be mapped for execution). About 40 ms for 100 MB. Leaves no
 * descriptor open. Returns 0 or a negative errno. */
int copy_open_fresh(const char *path, struct driver_copy *ret_copy);

/* Frees the socket name that an initialised copy holds in this process, so that another copy's
 * cuInit can succeed: shuts the socket down and puts an idle eventfd over its number. The old copy
 * stays mapped and idle. Returns how many sockets were freed (a positive outcome; 0: there was
 * none), or a negative errno (-EBUSY: the name stayed taken). Async-signal-safe. */
int copy_retire(void);

/* The same for a socket whose descriptor the program has closed or replaced, while the old copy's
 * thread still waits for it: makes that thread look. Silence the numbers afterwards
 * (quiet_files_silence). Returns 1 where the name was taken and is free now, 0 where it was free,
 * or a negative errno as above. */
int copy_wake(void);
