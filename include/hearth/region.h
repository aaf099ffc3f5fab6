/* The shared memory between broker and programs, ABI version 1.
 *
 * Two kinds of memfd, both sealed against shrinking and growing, handed over by the broker:
 *
 *   the region  written by the broker alone (sealed against future writes; programs map it
 *               read-only): the devices and the keeper.
 *   a page      written by one program alone: what it did, record by record. The broker copies
 *               from it and trusts nothing in it.
 *
 *   keeper:  OFF --> STARTING --> WARM --> RELEASED     RELEASED, FAILED --> STARTING
 *                        |          |
 *                        +--> FAILED <-+                (back-off, then STARTING)
 *
 * Fixed-width fields, one writer per line, no pointers, no locks. Padding is 0. Times in
 * microseconds: *_us of CLOCK_MONOTONIC unless the comment says otherwise. */
#pragma once

#include "hearth/record.h"

#define HEARTH_REGION_MAGIC 0x31524548u /* "HER1" */
#define HEARTH_PAGE_MAGIC 0x31504548u   /* "HEP1" */
#define HEARTH_REGION_VERSION 1u
#define HEARTH_MAX_DEVICES 64u
#define HEARTH_MAX_RECORDS 254u

enum hearth_keeper_state {
	HEARTH_KEEPER_OFF = 0, /* no keeper: asked for none, or no driver */
	HEARTH_KEEPER_STARTING,
	HEARTH_KEEPER_WARM,
	HEARTH_KEEPER_RELEASED, /* let go on request; comes back as `release` said */
	HEARTH_KEEPER_FAILED,   /* keeper_rc says why; retried with back-off */
};

enum hearth_retain { HEARTH_RETAIN_INIT = 0, HEARTH_RETAIN_CONTEXT = 1 };

struct hearth_device {
	uint8_t uuid[16];
	char name[64];         /* NUL-terminated */
	char pci[16];          /* "0000:8d:00.0", NUL-terminated */
	uint64_t memory;       /* bytes in all */
	uint32_t compute_mode; /* CU_COMPUTEMODE_*: 0 default, 2 prohibited, 3 exclusive process */
	uint32_t has_context;  /* 1 where the keeper retains a primary context here */
	uint64_t reserved[2];
};
static_assert(sizeof(struct hearth_device) == 128, "one device is two cache lines");

struct hearth_region {
	/* Written once, before anyone sees the region. */
	uint32_t magic;
	uint32_t version;
	uint32_t size;       /* of the whole segment, in bytes */
	uint32_t broker_pid; /* in the broker's own pid namespace */
	uint64_t started_us;
	uint64_t reserved0[5];
	/* Written by the broker whenever the keeper changes; keeper_state last, with release. */
	uint32_t keeper_state;    /* enum hearth_keeper_state; a futex word */
	uint32_t keeper_retain;   /* enum hearth_retain */
	int32_t keeper_rc;        /* CUresult of the keeper's last attempt */
	uint32_t keeper_pid;      /* in the broker's pid namespace; 0 = none */
	uint64_t keeper_since_us; /* when this state was entered */
	uint64_t keeper_init_us;  /* duration of the keeper's own cuInit, when nobody else had the
				   * GPU warm; 0 = not known. The estimate behind `hidden_us` of
				   * warm. */
	uint32_t driver_version;  /* as cuDriverGetVersion says; 0 = not known */
	uint32_t device_count;
	uint32_t client_count;
	uint32_t reserved1[5];
	struct hearth_device devices[HEARTH_MAX_DEVICES];
};
static_assert(sizeof(struct hearth_region) == 128 + 64 * 128, "region layout v1");

/* Flags of a page. */
#define HEARTH_PAGE_USES_CUDA 1u /* cuInit was called */
#define HEARTH_PAGE_EXITED 2u    /* the program came to its end by itself: totals are final */
#define HEARTH_PAGE_TOOL 4u      /* an injected tool: pass-through and records only */
#define HEARTH_PAGE_EAGER 8u     /* CUDA_MODULE_LOADING=EAGER at cuInit */
#define HEARTH_PAGE_MPS 16u      /* the program is a client of MPS */

struct hearth_page {
	/* Written by the broker before the program sees the page. */
	uint32_t magic;
	uint32_t version;
	uint32_t size;
	uint32_t slot; /* written by the program: its number, as WELCOME says; 0 = none */
	uint64_t reserved0[6];
	/* Written by the program. */
	uint32_t flags;             /* HEARTH_PAGE_* */
	uint32_t record_count;      /* records begun; those with seq != 0 are whole */
	uint32_t records_lost;      /* calls that found the page full */
	uint32_t device_count;      /* visible devices, once cuInit succeeded */
	uint64_t start_realtime_us; /* CLOCK_REALTIME when the preload's constructor ran */
	uint64_t first_result_us;   /* since then, the first result of the GPU; 0 = none yet */
	uint64_t visible_us;        /* totals of all records, also lost ones */
	uint64_t hidden_us;
	uint64_t lookup_us;       /* first lookup of cuInit since start; 0 = not seen */
	uint32_t rank;            /* at cuInit: the launcher's on this host, and 1; 0 = none */
	uint32_t visible_devices; /* a digest of CUDA_VISIBLE_DEVICES; 0 = unset */
	uint32_t connections;     /* CUDA_DEVICE_MAX_CONNECTIONS; 0 = unset */
	uint32_t jit_cache;       /* enum jit_cache, once the driver has compiled; 0 = not looked */
	uint64_t reserved1[7];
	uint64_t reserved2[8];
	struct hearth_record records[HEARTH_MAX_RECORDS];
};
static_assert(sizeof(struct hearth_page) == 256 + 254 * 128, "page layout v1: 32 KiB");
