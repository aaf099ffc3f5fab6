/* What the holder of a spare (lib/spare) and libhearth.so in its python tell each other: one page
 * of shared memory, a memfd that the python is started with. Nobody waits on it: it is looked at.
 * bootstrap.py reads `ahead`, and closes the descriptor before a program runs. Each field has one
 * writer. */
#pragma once

#include "profile/identity.h"

#include <stdbool.h>
#include <stdint.h>

#define SPARE_PAGE_FD 5
#define SPARE_PAGE_SIZE 4096
#define SPARE_NAME_SIZE 32

enum spare_ahead {
	SPARE_AHEAD_NOTHING,  /* nothing is done, or everything has been given up */
	SPARE_AHEAD_BEGUN,    /* the speculative thread is at work: descriptors come and go */
	SPARE_AHEAD_CONTEXT,  /* a context is held, on `device` */
	SPARE_AHEAD_INIT_ONLY /* cuInit has been done, and no context is to come */
};

struct spare_page {
	uint32_t ahead;      /* libhearth.so: enum spare_ahead; first, as bootstrap.py reads it */
	int32_t device;      /* libhearth.so: the ordinal of the context's */
	uint32_t is_adopted; /* the holder; written after the two times */
	uint32_t has_gpu;    /* the holder, at the start: make a context on `gpu`, unasked */
	int32_t gpu;         /* an ordinal among the visible devices */
	uint32_t is_off;     /* the holder, at the start: nothing is to be done ahead */
	uint32_t is_named;   /* `identity` is a program's: what runs here teaches it nothing */
	uint64_t adopted_monotonic_us, adopted_realtime_us;
	char name[SPARE_NAME_SIZE]; /* the holder, with the two times: the program's, for reports */
	struct identity identity;   /* whose profile counts: a program's, or the kind's own */
};

_Static_assert(sizeof(struct spare_page) <= SPARE_PAGE_SIZE, "one page");
