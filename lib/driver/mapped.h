/* Which file an address is mapped from by the loader, and where in it. dl_iterate_phdr alone: no
 * lock that is held while constructors run. Nothing here allocates. */
#pragma once

#include "driver/build_id.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct mapped {
	uintptr_t base;      /* load address of the object: tells loaded objects apart */
	uint64_t offset;     /* of the address in its file */
	uint64_t left;       /* bytes from there to the end of what is mapped from the file */
	uint64_t beside;     /* of the second address, where it is in the same file's part */
	struct build_id id;  /* size 0: it has none */
	char path[PATH_MAX]; /* as the loader names it, made absolute with the working folder of
			      * now where it is not; of the program itself what /proc/self/exe
			      * says */
};

#define MAPPED_NOT_BESIDE UINT64_MAX

/* `beside` is a second address to be looked for in the same object; NULL for none. 0; -ENOENT where
 * no loaded object has the address in its file's part, or the path is longer. One walk over all
 * objects: some 10 us in a large program. */
int mapped_find(const void *address, const void *beside, struct mapped *ret_mapped);
