/* The keeper process: `hearthd --keeper RETAIN`, with one end of a socket pair as descriptor 3. */
#pragma once

#include "hearth/region.h"

#include <limits.h>
#include <stdint.h>

#define KEEPER_FD 3
#define KEEPER_REPORT_MAGIC 0x4b545248u /* "HRTK" */
/* keeper_report.rc where there is no driver to open; no CUresult is negative. */
#define KEEPER_NO_DRIVER (-1)

/* What the child says: once after cuInit, and again whenever something has changed. */
struct keeper_report {
	uint32_t magic;
	int32_t rc;              /* CUresult, or KEEPER_NO_DRIVER */
	uint64_t init_us;        /* duration of cuInit */
	uint32_t was_cold;       /* nobody had the GPUs warm before, as far as can be seen */
	uint32_t driver_version; /* as cuDriverGetVersion says */
	uint32_t device_count;
	uint32_t reserved;
	char driver_path[PATH_MAX];
	struct hearth_device devices[HEARTH_MAX_DEVICES];
};

/* Never returns before the other end of the socket is closed or the driver reports that a device is
 * lost. The process's exit status. */
int keeper_child_main(enum hearth_retain retain);
