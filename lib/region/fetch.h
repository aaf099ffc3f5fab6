/* The program's side of DRIVER: the broker's copy of the driver's file, for a fresh copy of the
 * driver that costs no disk. */
#pragma once

#include "base/settings.h"

#include <stdint.h>

#define FETCH_BUILD_ID_SIZE 32

/* Asks for the driver with that build-id (zero-padded). 0 with a descriptor of a memfd that nobody
 * can change any more, open for reading, the caller's to close; -ENOENT where no broker is or it
 * has another driver; -ETIMEDOUT where it is not there by `deadline_us` (clock_monotonic_us; the
 * first request of all makes the copy: 0.1 s for 100 MB). What is in it, the caller checks. */
int fetch_driver(const struct settings *settings, const uint8_t build_id[FETCH_BUILD_ID_SIZE],
	uint64_t deadline_us, int *ret_fd, uint64_t *ret_size);
