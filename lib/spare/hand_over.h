/* Handing a spare over to the program that a client brings. */
#pragma once

#include "spare/holder.h"

#include <stddef.h>

/* Answers SPARE_ADOPT. Where the program is run, this does not return: the process ends with it.
 * Else the client was told no, and the spare waits on, or is of no use any more. */
enum hand_over_result { HAND_OVER_AS_IT_WAS, HAND_OVER_SPOILT };
enum hand_over_result hand_over(struct holder *holder, int fd, const struct spare_message *message,
	int *fds, size_t fd_count);
