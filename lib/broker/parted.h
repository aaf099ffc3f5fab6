/* Connections that have had their answer and only wait to be closed, which nobody waits for. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define PARTED_MAX 512

struct parted {
	int fds[PARTED_MAX];
	size_t count;
};

/* Takes a descriptor over; closes it at once where too many wait. */
void parted_add(struct parted *parted, int fd);

/* Closes some of them. */
void parted_close_some(struct parted *parted);

/* Closes all. Whether there were any. */
bool parted_close_all(struct parted *parted);
