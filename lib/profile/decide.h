/* What to do ahead for a process that starts: pure functions of its profile and its situation, so
 * that every rule is a row in a test.
 *
 * In two steps, because what the second needs is known only once cuInit has been done:
 *
 *   decide_start    at process start or at the first lookup of cuInit: nothing, cuInit alone, or
 *                   cuInit and a context; and at which of the two moments
 *   decide_device   after the speculative cuInit: which contexts on which device, or none
 *
 * Every decision comes with its reason, for logs and `hearth profile show`. Times are microseconds.
 */
#pragma once

#include "base/settings.h"
#include "profile/profile.h"

#define DECIDE_LEAD_MIN_US 3000       /* who calls sooner than this gains nothing from a thread */
#define DECIDE_INIT_DEFAULT_US 200000 /* cuInit with no keeper, where nothing was measured yet */
#define DECIDE_CONTEXT_DEFAULT_US 120000
#define DECIDE_MARGIN_PERCENT 25 /* the later moment must leave so much more than is needed */
#define DECIDE_CHILD_RUNS 8      /* of spawned children, all of which used CUDA */
#define DECIDE_GIVE_BACK_US 10000000
#define DECIDE_GIVE_BACK_KERNEL_US 60000000
#define DECIDE_GIVE_BACK_LEADS 3 /* or so many times the learned lead, if that is longer */
#define DECIDE_MEMORY_MIN ((uint64_t)2 << 30)
#define DECIDE_MEMORY_MIN_PERCENT 10

enum decide_what { DECIDE_NOTHING, DECIDE_INIT, DECIDE_CONTEXT };

enum decide_moment {
	DECIDE_AT_START,  /* at once, from the constructor */
	DECIDE_AT_LOOKUP, /* when cuInit is looked up first */
};

/* What is known of the process, without the driver. */
struct situation {
	const struct profile_section *section; /* for its driver and GPU; NULL: nothing learned */
	enum identity_kind kind;
	enum speculate_mode mode; /* HEARTH_SPECULATE */
	bool is_chosen;           /* `always` holds for this process: the one that was exec'ed, or
				   * one none of whose ancestors looked up cuInit */
	bool is_eager;            /* the one that `hearth run --eager` exec'ed */
	bool is_spare;            /* a python that waits for a program */
	bool has_gpu;             /* that has been told to have a context on `gpu` */
	int gpu;
	bool is_tool;               /* a debugger or profiler injects itself */
	bool is_mps;                /* an MPS client */
	bool is_undo_proven;        /* the self-test of this driver build passed */
	bool is_getenv_redirected;  /* the driver's getenv import can be redirected */
	enum context_mode contexts; /* HEARTH_CTX */
	uint64_t give_back_us;      /* HEARTH_GIVE_BACK; 0: the rule */
};

struct start_decision {
	enum decide_what what;
	enum decide_moment moment;
	uint64_t give_back_us; /* from the speculation's end */
	const char *reason;
};

void decide_start(const struct situation *situation, struct start_decision *ret_decision);

/* One device as it can be seen from outside. */
struct device_state {
	bool is_memory_known;
	uint64_t free_bytes;
	uint64_t total_bytes;
	uint32_t compute_mode; /* CU_COMPUTEMODE_*; 0 is default */
};
#define COMPUTE_DEFAULT 0u

#define DECIDE_NO_RANK (-1)
#define DECIDE_BAD_RANK (-2)

/* The launcher's rank on this host from LOCAL_RANK, SLURM_LOCALID, OMPI_COMM_WORLD_LOCAL_RANK or
 * MPI_LOCALRANKID, the first that is set: a rank, DECIDE_NO_RANK, or DECIDE_BAD_RANK for what is no
 * number. */
int decide_rank(const char *const values[], int count);
int decide_rank_of_environment(void);

/* The device that the rules name, probation aside: an ordinal, or -1. */
int decide_guess(const struct profile_section *section, enum identity_kind kind, int visible_count,
	int rank);

struct device_decision {
	int device; /* -1: no context */
	uint32_t context_count;
	struct profile_context contexts[PROFILE_CONTEXTS]; /* to be made, in this order */
	bool must_check_memory; /* free memory was not known: look once the context is there */
	const char *reason;
};

/* `devices` has visible_count elements. */
void decide_device(const struct situation *situation, int visible_count, int rank,
	const struct device_state *devices, struct device_decision *ret_decision);

/* Is there room for a context? NULL, or the reason why not. */
const char *decide_room(const struct device_state *device);

/* The middle of the leads that were seen; 0 where none was. */
uint32_t decide_lead(const uint32_t leads[PROFILE_LEADS]);
