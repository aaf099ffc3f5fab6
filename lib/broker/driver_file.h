/* The driver's file as a sealed memfd, one per build-id, for fresh copies in programs. Made at the
 * first request, on a thread of its own (the file has 100 MB), from the file that the keeper
 * opened. */
#pragma once

#include "broker/loop.h"

#include <stdbool.h>
#include <stdint.h>

#define DRIVER_FILE_MAX 2 /* kept: the driver of now and the one before an upgrade */

struct driver_copy {
	uint8_t build_id[32];
	int fd; /* read-only, sealed; -1 = empty */
	uint64_t size;
};

struct driver_job;

struct driver_files {
	struct driver_copy copies[DRIVER_FILE_MAX];
	uint32_t next;          /* the place to use next */
	struct source done;     /* an eventfd: a copy is made, ask again */
	struct driver_job *job; /* running, or NULL */
};

/* 0 or -errno. The loop turns whenever driver_files_get is worth asking again. */
int driver_files_open(struct driver_files *files, struct loop *loop);
void driver_files_close(struct driver_files *files, struct loop *loop);

/* 0 with a descriptor of its own (offset 0), the caller's; DRIVER_FILE_LATER while it is being
 * made; -ENOENT where the file at `path` is not the driver with that build-id; -errno of copying.
 * Never waits. */
#define DRIVER_FILE_LATER 1
int driver_files_get(struct driver_files *files, const char *path, const uint8_t build_id[32],
	int *ret_fd, uint64_t *ret_size);
