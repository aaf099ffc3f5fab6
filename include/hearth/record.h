/* The first-call record: what one call made the program wait, and how it was served.
 *
 * Records are written by the program into its own page of shared memory (region.h), where the
 * broker finds them even after SIGKILL. Whoever reads a page treats it as hostile: it copies a
 * record, then checks it with record_check (lib/region). All times are microseconds. */
#pragma once

#include <assert.h>
#include <stdint.h>

/* How a call was served. The names in logs are the same in lower case. */
enum hearth_how {
	HEARTH_COLD = 1,   /* by the driver, nothing was ready */
	HEARTH_WARM,       /* by the driver, whose state the keeper had kept warm */
	HEARTH_SPECULATED, /* done ahead on the speculative thread */
	HEARTH_ADOPTED,    /* the program was handed an object made ahead */
	HEARTH_PREFETCHED, /* a library or kernel loaded ahead */
	HEARTH_SQUASHED,   /* a wrong guess was undone first */
	HEARTH_JIT,        /* the driver compiled PTX in this call */
};

struct hearth_record {
	char call[40];   /* the entry's ABI name, NUL-padded */
	char object[32]; /* library loads: base name of the file the image lies in; else empty */
	int32_t device;  /* ordinal in this process, -1 where no device is current */
	int32_t rc;      /* the CUresult the program got */
	uint32_t how;    /* enum hearth_how */
	uint32_t seq;    /* written last, with release: 1 for the first record; 0 = not written */
	uint64_t at_us;  /* when the call began, since the preload's constructor ran */
	uint64_t visible_us; /* what the program waited */
	uint64_t hidden_us;  /* what was done ahead, or (warm) what the keeper saved by estimate */
	uint64_t size;       /* library loads: bytes of the image where known, else 0 */
	uint64_t reserved;   /* 0 */
};
static_assert(sizeof(struct hearth_record) == 128, "one record is two cache lines");
