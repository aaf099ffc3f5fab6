/* Packets of wire.h, sent and received with a deadline. */
#pragma once

#include "spare/wire.h"

#include <stddef.h>

void packet_init(struct spare_message *ret_message, enum spare_what what, int value);

/* 0 or -errno. */
int packet_send(int fd, const struct spare_message *message, const int *fds, size_t fd_count);
int packet_tell(int fd, enum spare_what what, int value);

/* Waits `limit_us` for one. 0; -ETIMEDOUT, -ECONNRESET, -EPROTO or -errno. Descriptors are the
 * caller's; `max_fds` is SPARE_FDS at most, 0 takes none. */
int packet_receive(int fd, uint64_t limit_us, struct spare_message *ret_message, int *ret_fds,
	size_t max_fds, size_t *ret_fd_count);
