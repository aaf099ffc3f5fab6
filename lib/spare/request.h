/* What a client sends: the kind, and everything that a program gets from its start. */
#pragma once

#include "profile/spare_page.h"
#include "spare/kind.h"

#include <stdbool.h>

#define REQUEST_FDS 250
#define REQUEST_OWN_FDS 2 /* the first */

/* fds[0] is the text, a memfd; fds[1] the working folder; then the program's own, by number. */
struct request {
	int fds[REQUEST_FDS];     /* what is sent */
	int numbers[REQUEST_FDS]; /* what it is to be; from REQUEST_OWN_FDS on */
	size_t fd_count;
};

/* 0, or -errno; -ENOTSUP for too many descriptors. */
int request_make(const struct command_line *line, const struct text *kind, bool has_terminal,
	struct request *ret_request);

/* In the process that holds a spare: what the program of that request is called, its base name,
 * NUL-padded; empty for a text, and where the request cannot be read. */
void request_name(int fd, char ret_name[SPARE_NAME_SIZE]);

/* Closes the two that are its own. */
void request_done(struct request *request);
