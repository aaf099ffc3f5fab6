/* What the two sides of the prefetch share: prefetch.c (the speculative thread) and
 * prefetch_claim.c (the program's threads). */
#pragma once

#include "preload/prefetch.h"

#include "preload/image_source.h"

enum prefetch_state {
	PREFETCH_WAITING,
	PREFETCH_LOADING,
	PREFETCH_READY,
	PREFETCH_TAKEN,
	PREFETCH_GONE,
	PREFETCH_SKIPPED,
};

struct prefetch_image {
	uint32_t state;     /* enum prefetch_state */
	uint32_t is_wanted; /* the program waits for it */
	uint32_t index;     /* in the list */
	uint32_t epoch;     /* in which it was loaded */
	bool is_open;       /* `source` is there */
	struct image_source source;
	struct fatbin_wrapper
		wrapper; /* the driver may hold on to it as long as the library lives */
	void *handle;    /* CUlibrary or CUmodule */
	uint64_t load_us;
};

struct prefetch {
	struct images list;
	struct prefetch_image *images;
	uint32_t count; /* written last: everything above is there, and stays */
	uint32_t epoch;
	uint32_t halts;    /* how many threads of the program want the thread to be still */
	uint32_t launched; /* the program has launched something */
	uint32_t events;   /* counts what the waiting thread must look at */
	uint32_t readers;  /* threads of the program that compare sources */
	uint64_t last_us;  /* when an image was last handed over */
};

extern struct prefetch prefetch;

/* Opens what the profile lists, and publishes it; false where that is nothing. */
bool prefetch_make_table(uint32_t epoch);

/* What the profile says of it. */
const struct image *prefetch_listed(const struct prefetch_image *image);

/* Library or module? */
bool prefetch_is_library(const struct prefetch_image *image);

/* Does the driver hold on to our copy of it? */
bool prefetch_is_preserved(const struct prefetch_image *image);

/* Closes the source of an image that nobody else has, where nobody but `own_readers` may be reading
 * it; else it stays. */
void prefetch_close(struct prefetch_image *image, uint32_t own_readers);

/* Unloads an image that whoever calls has for itself; inside the driver. */
void prefetch_unload(struct prefetch_image *image);

/* Wakes the thread. */
void prefetch_wake(void);
