/* What `hearth status` shows: one JSON object in a sealed memfd. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct broker;

/* For a peer of that uid: root and the broker's own user see all clients, others their own. 0 with
 * a read-only descriptor, the caller's; or -errno. */
int status_make(const struct broker *broker, uid_t uid, int *ret_fd, uint64_t *ret_size);
