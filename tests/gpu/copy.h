/* A copy of the driver's file, opened as a library of its own, and the entries the experiments
 * call. Free never: the copies live until the process ends. */
#pragma once

#include <link.h>

struct driver {
	void *handle;
	struct link_map *map;
	int (*init)(unsigned flags);
	int (*get_count)(int *ret_count);
	int (*retain)(void **ret_context, int device);
	int (*release)(int device);
	int (*set_current)(void *context);
	int (*allocate)(unsigned long *ret_address, size_t bytes);
	int (*copy_in)(unsigned long to, const void *from, size_t bytes);
	int (*copy_out)(void *to, unsigned long from, size_t bytes);
};

/* Opens `path` itself. Returns 0, or -1 with a message on stderr. */
int driver_open(const char *path, struct driver *ret_driver);

/* Copies the file to a path of its own under TMPDIR, opens it and removes the name again.
 * Returns 0 or -1; the times, in ms, are the copy's and the dlopen's. */
int driver_open_copy(
	const char *path, struct driver *ret_driver, double *ret_copy_ms, double *ret_open_ms);

/* The first steps of a program in one line on stdout: init, count, retain, a value there and back.
 * Returns 1 if the value came back. */
int driver_use(struct driver *driver, const char *label);

/* CLOCK_MONOTONIC in milliseconds. */
double now_ms(void);
