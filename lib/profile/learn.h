/* Learning: one run's observation becomes part of the program's profile. */
#pragma once

#include "profile/profile.h"

#define LEARN_TRIES 8u     /* guesses whose outcome counts */
#define LEARN_PAUSE_MIN 4u /* runs without a guess after too many misses; doubles each time */
#define LEARN_PAUSE_MAX 64u
#define LEARN_PROBATION 3u /* clean runs after a wrong device */

/* How this run's speculation ended. */
enum learn_outcome {
	LEARN_NOT_TRIED = 0,
	LEARN_HIT,      /* all that was made ahead was committed */
	LEARN_SQUASHED, /* at least one stage was undone */
	LEARN_UNUSED,   /* nobody asked before it was given back or the program ended */
	LEARN_FAILED,   /* the driver refused the speculation: says nothing about the program */
};

/* What one run showed. Zero-initialised is "nothing happened". */
struct observation {
	uint8_t build_id[PROFILE_BUILD_SIZE];
	const char *model; /* of the first visible GPU; "" where it never came to be known */
	uint64_t realtime_s;
	bool is_used;            /* cuInit was called by the program */
	uint64_t start_lead_us;  /* process start to its call; meaningless unless is_used */
	uint64_t lookup_lead_us; /* first lookup to its call; 0 = no lookup was seen */
	uint64_t init_us;        /* what cuInit took, whoever waited; 0 = not known */
	uint64_t context_us;     /* what the first context took; 0 = not known */
	bool env_after_start;    /* see struct profile_section */
	bool env_after_lookup;
	bool forked_after_start;
	bool forked_after_lookup;
	bool is_several;        /* another instance ran at the same time */
	int visible_count;      /* 0 = not known */
	int rank;               /* as decide_rank says */
	uint32_t context_count; /* contexts[0].device is the program's device */
	struct profile_context contexts[PROFILE_CONTEXTS];
	enum learn_outcome outcome;
	bool is_wrong_device; /* a context was made ahead on another device */
};

/* Updates the profile. Pure. */
void learn(struct profile *profile, const struct observation *observation);

/* One run's whole duty: reads the program's profile as it is now, the user's or else the one that
 * an image ships (system_folder may be NULL), learns, writes the user's, and begins again where
 * another writer came between. That is seen up to the moment of renaming, without a lock: of two
 * runs that end within microseconds (on NFS: within its caching) one may be lost, and nothing is
 * damaged. The extension area is kept. Maps scratch memory, needs some 40 KiB of stack, changes
 * errno; 0 or a negative errno. */
int learn_run(const char *folder, const char *system_folder, const struct identity *identity,
	const struct observation *observation);
