/* Warnings about a run. Pure; in tools only. Must not warn about what happened once: a
 * first run compiles its PTX, and any guess may be undone. */
#include "report/warnings.h"

#include "report/causes.h"
#include "report/figure.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_BACK 8 /* runs of the same program */
#define OFTEN 3     /* of those, this one included */
/* What is less is the keeper's or the machine's noise. */
#define DEAR_INIT_US 50000
#define MAX_DEVICES 64

static bool is_how(const struct run *run, const char *how, uint64_t *ret_us)
{
	bool is = false;

	*ret_us = 0;
	for (size_t i = 0; i < run->count; i++) {
		if (strcmp(run->records[i].how, how))
			continue;
		is = true;
		*ret_us += run->records[i].visible_us;
	}
	return is;
}

/* How many of the program's latest runs, the run `at` included, had a call so served. */
static unsigned count_how(const struct run_log *log, size_t at, const char *how)
{
	unsigned count = 0, looked = 0;
	uint64_t us;

	for (size_t i = at + 1; i-- > 0 && looked < LOOK_BACK;) {
		if (strcmp(log->runs[i].program, log->runs[at].program))
			continue;
		looked++;
		count += is_how(&log->runs[i], how, &us);
	}
	return count;
}

static void warn_jit(const struct run_log *log, size_t at, struct findings *findings)
{
	char time[FIGURE_SIZE];
	uint64_t us;

	if (!is_how(&log->runs[at], "jit", &us) || count_how(log, at, "jit") < 2)
		return;
	findings_add(findings, "ptx-jit", SEVERITY_WARNING,
		"PTX is compiled at every start, here for %s", figure_time(us, time));
	findings_remedy(findings,
		"build for this GPU's architecture, or let the JIT cache keep it: `hearth doctor` "
		"says whether it can");
}

/* The first entry of that name: the latest learned. */
static const char *why_squashed(const struct profiles *profiles, const char *program)
{
	for (size_t i = 0; i < profiles->count; i++) {
		const struct profile *profile = &profiles->entries[i].profile;

		if (strncmp(profile->name, program, sizeof(profile->name)))
			continue;
		for (uint32_t j = 0; j < profile->section_count; j++) {
			const struct profile_section *section = &profile->sections[j];

			if (section->env_after_start || section->env_after_lookup)
				return "it changes the driver's environment before its first call; "
				       "set CUDA_VISIBLE_DEVICES and the like before it starts";
			if (section->forked_after_start || section->forked_after_lookup)
				return "it forks before its first call; spawn its children, or "
				       "fork before CUDA is imported";
			if (section->wrong_rank)
				return "it takes another GPU than its launcher's rank says";
		}
	}
	return "its profile does not say; `hearth profile show` has what was learned";
}

static void warn_squashed(const struct run_log *log, size_t at, const struct profiles *profiles,
	struct findings *findings)
{
	const struct run *run = &log->runs[at];
	unsigned count = count_how(log, at, "squashed");
	uint64_t us;

	if (!is_how(run, "squashed", &us) || count < OFTEN)
		return;
	findings_add(findings, "squashed", SEVERITY_WARNING,
		"what was done ahead had to be undone in %u of the latest runs: %s", count,
		why_squashed(profiles, run->program));
	findings_remedy(findings, "that, or HEARTH_SPECULATE=off for this program");
}

/* How long a cold cuInit took that is worth a word; 0 where there was none. */
static uint64_t dear_init_us(const struct run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		const struct run_record *record = &run->records[i];

		if (run_record_kind(record) == RUN_INIT && !strcmp(record->how, "cold") &&
			record->visible_us >= DEAR_INIT_US)
			return record->visible_us;
	}
	return 0;
}

static void warn_visible(const struct run *run, struct findings *findings)
{
	char time[FIGURE_SIZE];

	uint64_t us = dear_init_us(run);

	if (run->devices < 2 || !us)
		return;
	findings_add(findings, "visible-gpus", SEVERITY_WARNING,
		"%u GPUs were visible, and cuInit took %s to bring them all up", run->devices,
		figure_time(us, time));
	findings_remedy(findings,
		"set CUDA_VISIBLE_DEVICES to those that it uses, or keep them warm (hearth run, "
		"hearthd)");
}

/* The devices that it made contexts on, as bits. */
static uint64_t contexts_of(const struct run *run)
{
	uint64_t devices = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct run_record *record = &run->records[i];

		if (run_record_kind(record) == RUN_CONTEXT && !record->rc && record->device >= 0 &&
			record->device < MAX_DEVICES)
			devices |= UINT64_C(1) << record->device;
	}
	return devices;
}

static bool ran_together(const struct run *a, const struct run *b)
{
	return a != b && !strcmp(a->program, b->program) && a->duration_us != RUN_UNKNOWN &&
	       b->duration_us != RUN_UNKNOWN && a->start_us < b->start_us + b->duration_us &&
	       b->start_us < a->start_us + a->duration_us;
}

static uint64_t bit_of(int device)
{
	return device >= 0 && device < MAX_DEVICES ? UINT64_C(1) << device : 0;
}

/* Do both number the same devices in the same way, and is each rank the number of one? */
static bool are_ranks_devices(const struct run *a, const struct run *b)
{
	return a->conditions.visible == b->conditions.visible && a->devices == b->devices &&
	       a->conditions.rank < (int)a->devices && b->conditions.rank < (int)b->devices;
}

/* Ranks are what the launcher has said (LOCAL_RANK and the like). A second GPU may be a rank's own,
 * where each has several: it is another's where that one works there. */
static void warn_rank(const struct run_log *log, size_t at, struct findings *findings)
{
	const struct run *run = &log->runs[at];
	int rank = run->conditions.rank;
	uint64_t mine = contexts_of(run) & ~bit_of(rank);

	for (size_t i = 0; rank >= 0 && mine && i < log->count; i++) {
		const struct run *other = &log->runs[i];
		int others = other->conditions.rank;

		if (others < 0 || others == rank || !ran_together(run, other) ||
			!are_ranks_devices(run, other) ||
			!(mine & contexts_of(other) & bit_of(others)))
			continue;
		findings_add(findings, "rank", SEVERITY_WARNING,
			"rank %d made a context on GPU %d, where rank %d works: some 500 MB and "
			"0.1 s",
			rank, others, others);
		findings_remedy(findings,
			"torch.cuda.set_device(LOCAL_RANK) before anything else, or one visible "
			"GPU for each process");
		return;
	}
}

void warnings_find_habits(const struct run_log *log, size_t at, const struct profiles *profiles,
	struct findings *findings)
{
	warn_jit(log, at, findings);
	warn_squashed(log, at, profiles, findings);
	warn_rank(log, at, findings);
}

void warnings_find_conditions(const struct run *run, struct findings *findings)
{
	causes_add_loading(findings, run->conditions.is_eager);
	causes_add_connections(findings, run->conditions.connections);
	causes_add_cache(findings, run->conditions.cache, NULL);
	warn_visible(run, findings);
}

bool warnings_is_init_dear(const struct run *run)
{
	return dear_init_us(run);
}
