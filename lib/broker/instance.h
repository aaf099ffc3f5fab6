/* One broker per socket: a lock file beside it, held while the process lives. */
#pragma once

#include "region/address.h"

#include <stdbool.h>
#include <sys/types.h>

struct instance {
	struct address address;
	int lock;
	dev_t device; /* of the socket's file, to know it again */
	ino_t inode;
};

/* Takes the lock and puts a listening socket at `address`, in the place of a stale one. A folder of
 * the machine's (`is_system`) is made 0755 and the socket 0666; else 0600. 0;
 * INSTANCE_RUNNING where somebody serves there already; -EEXIST where something else than a socket
 * lies there; -EBUSY where the lock's holder neither serves nor goes; or -errno. */
#define INSTANCE_RUNNING 1
int instance_take(const struct address *address, bool is_system, struct instance *ret_instance,
	int *ret_listener);

/* Whether the socket at the address is still the one that was put there. */
bool instance_is_ours(const struct instance *instance);

/* Removes the socket, where it is ours still. */
void instance_hide(const struct instance *instance);

/* Lets go of the lock. */
void instance_release(struct instance *instance);
