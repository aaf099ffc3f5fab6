/* Where waiting spares are found: one socket each, KIND.PID, in the folder `spares` beside the
 * user's broker's. Nobody else can enter it. */
#pragma once

#include "region/address.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The folder's path, made where `makes`, and checked. 0 or -errno; -ENOENT where it is not there.
 */
int folder_find(int makes, char ret_path[ADDRESS_MAX]);

/* The path of a spare's socket. 0 or -ENAMETOOLONG. */
int folder_name(const char *folder, uint64_t digest, pid_t holder, char ret_path[ADDRESS_MAX]);

/* Calls `take` with a connection to each spare's holder, and its path, of kind `digest` or of all
 * where that is NULL; removes the sockets that nobody serves any more. The connection is closed
 * after it. Ends where `take` returns other than 0, with that; else 0. */
int folder_each(
	const uint64_t *digest, int (*take)(int fd, const char *path, void *data), void *data);

/* Whether there is a socket of that kind, served or not. */
bool folder_has(uint64_t digest);
