/* Warnings below a run's table. Runs in `hearth report`. Must not warn about what happened once: a
 * first run compiles its PTX, and any guess may be undone. */
#include "report/warnings.h"

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

static void warn_jit(const struct run_log *log, size_t at, FILE *to)
{
	char time[FIGURE_SIZE];
	uint64_t us;

	if (!is_how(&log->runs[at], "jit", &us) || count_how(log, at, "jit") < 2)
		return;
	fprintf(to,
		"warning: PTX is compiled at every start, here for %s\n"
		"  remedy: build for this GPU's architecture, or let the JIT cache keep it: "
		"`hearth doctor` says whether it can\n",
		figure_time(us, time));
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

static void warn_squashed(
	const struct run_log *log, size_t at, const struct profiles *profiles, FILE *to)
{
	const struct run *run = &log->runs[at];
	unsigned count = count_how(log, at, "squashed");
	uint64_t us;

	if (!is_how(run, "squashed", &us) || count < OFTEN)
		return;
	fprintf(to,
		"warning: what was done ahead had to be undone in %u of the latest runs: %s\n"
		"  remedy: that, or HEARTH_SPECULATE=off for this program\n",
		count, why_squashed(profiles, run->program));
}

static void warn_visible(const struct run *run, FILE *to)
{
	char time[FIGURE_SIZE];

	for (size_t i = 0; run->devices > 1 && i < run->count; i++) {
		const struct run_record *record = &run->records[i];

		if (run_record_kind(record) != RUN_INIT || strcmp(record->how, "cold") ||
			record->visible_us < DEAR_INIT_US)
			continue;
		fprintf(to,
			"warning: %u GPUs were visible, and cuInit took %s to bring them all up\n"
			"  remedy: set CUDA_VISIBLE_DEVICES to those that it uses, or keep them "
			"warm (hearth run, hearthd)\n",
			run->devices, figure_time(record->visible_us, time));
		return;
	}
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

/* A rank is known by its siblings: processes of the same program at the same time, each with a GPU
 * of its own. */
static void warn_rank(const struct run_log *log, size_t at, FILE *to)
{
	const struct run *run = &log->runs[at];
	uint64_t mine = contexts_of(run), theirs = 0;

	if (!(mine & (mine - 1)))
		return; /* one at most */
	for (size_t i = 0; i < log->count; i++) {
		uint64_t others = contexts_of(&log->runs[i]);

		if (ran_together(run, &log->runs[i]) && !(others & (others - 1)))
			theirs |= others;
	}
	if (!(mine & theirs) || !(mine & ~theirs))
		return;
	fprintf(to,
		"warning: it made a context on GPU %d too, where another process of the same "
		"program works: some 500 MB and 0.1 s\n"
		"  remedy: torch.cuda.set_device(LOCAL_RANK) before anything else, or one visible "
		"GPU for each process\n",
		__builtin_ctzll(mine & theirs));
}

void warnings_print(const struct run_log *log, size_t at, const struct profiles *profiles, FILE *to)
{
	warn_jit(log, at, to);
	warn_squashed(log, at, profiles, to);
	warn_visible(&log->runs[at], to);
	warn_rank(log, at, to);
}
