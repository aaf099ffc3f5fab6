/* What a run teaches. Pure functions; in the user's process and in the broker. */
#include "profile/learn.h"

#include "profile/decide.h"

#include <string.h>

static uint32_t saturate(uint64_t value)
{
	return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static void count(uint32_t *total)
{
	if (*total < UINT32_MAX)
		++*total;
}

static void remember(uint32_t *history, bool is_so)
{
	*history = *history << 1 | is_so;
}

static void remember_lead(uint32_t leads[PROFILE_LEADS], uint64_t lead_us)
{
	memmove(leads + 1, leads, (PROFILE_LEADS - 1) * sizeof(leads[0]));
	leads[0] = saturate(lead_us);
}

/* A quarter of the way to the new value, so that one cold start among warm ones counts little. */
static void smooth(uint32_t *average, uint64_t value_us)
{
	int64_t value = saturate(value_us);

	if (!value)
		return;
	*average =
		*average ? (uint32_t)(*average + (value - (int64_t)*average) / 4) : (uint32_t)value;
	if (!*average)
		*average = 1;
}

static void learn_histories(struct profile_section *section, const struct observation *run)
{
	remember(&section->used, run->is_used);
	remember(&section->context, run->context_count > 0);
	remember(&section->env_after_start, run->env_after_start);
	remember(&section->env_after_lookup, run->env_after_lookup);
	remember(&section->forked_after_start, run->forked_after_start);
	remember(&section->forked_after_lookup, run->forked_after_lookup);
	remember(&section->several, run->is_several);
	count(&section->runs);
	if (section->recent < 32)
		section->recent++;
	if (!run->is_used)
		return;
	remember_lead(section->start_lead_us, run->start_lead_us);
	remember_lead(section->lookup_lead_us, run->lookup_lead_us);
	smooth(&section->init_us, run->init_us);
	smooth(&section->context_us, run->context_us);
}

static void begin_probation(struct profile_section *section, const struct observation *run)
{
	section->probation = LEARN_PROBATION;
	section->wrong_rank = run->rank >= 0 ? (uint32_t)run->rank + 1 : 0;
}

/* The ranks of one launch share a profile. Were each of them a clean run, those for which the rule
 * holds would end the probation in the very launch in which it was wrong for another: so a rank's
 * probation is ended by that rank alone, or by runs in which its device is not there. */
static bool counts_as_clean(const struct profile_section *section, const struct observation *run)
{
	return !section->wrong_rank || run->rank < 0 ||
	       section->wrong_rank == (uint32_t)run->rank + 1 ||
	       section->wrong_rank > (uint32_t)run->visible_count;
}

/* A run is clean when the rule as it stood would have named the device that the program took. */
static void learn_probation(struct profile_section *section, enum identity_kind kind,
	const struct observation *run, int device)
{
	int guess = decide_guess(section, kind, run->visible_count, run->rank);

	if (run->is_wrong_device || (guess >= 0 && guess != device))
		begin_probation(section, run);
	else if (guess >= 0 && section->probation && counts_as_clean(section, run))
		section->probation--;
}

static void learn_rule(struct profile_section *section, const struct observation *run, int device)
{
	section->ordinal = -1;
	if (run->visible_count == 1) {
		section->rule = PROFILE_RULE_ONLY;
	} else if (run->rank != DECIDE_NO_RANK) {
		section->rule = run->rank == device ? PROFILE_RULE_RANK : PROFILE_RULE_NONE;
	} else {
		section->rule = PROFILE_RULE_ORDINAL;
		section->ordinal = device;
	}
}

static void learn_device(
	struct profile_section *section, enum identity_kind kind, const struct observation *run)
{
	int device = run->contexts[0].device;

	if (!run->context_count || run->visible_count <= 0) {
		if (run->is_wrong_device)
			begin_probation(section, run);
		return;
	}
	learn_probation(section, kind, run, device);
	learn_rule(section, run, device);
	section->context_count =
		run->context_count < PROFILE_CONTEXTS ? run->context_count : PROFILE_CONTEXTS;
	memset(section->contexts, 0, sizeof(section->contexts));
	memcpy(section->contexts, run->contexts,
		section->context_count * sizeof(section->contexts[0]));
}

static void begin_pause(struct profile_section *section)
{
	section->pauses = section->pauses ? section->pauses * 2 : LEARN_PAUSE_MIN;
	if (section->pauses > LEARN_PAUSE_MAX)
		section->pauses = LEARN_PAUSE_MAX;
	section->pause = section->pauses;
	section->tries = 0;
	section->tried = 0;
}

/* Below one hit in two it stops for a while, for twice as long each time; a full row of hits makes
 * it forget that. */
static void learn_outcome(struct profile_section *section, const struct observation *run)
{
	uint32_t hits;

	if (section->pause)
		section->pause--;
	if (run->outcome == LEARN_NOT_TRIED || run->outcome == LEARN_FAILED)
		return;
	count(run->outcome == LEARN_HIT        ? &section->hits
		: run->outcome == LEARN_UNUSED ? &section->unused
					       : &section->squashes);
	/* That has a remedy of its own: the next runs do cuInit alone. */
	if (run->is_wrong_device)
		return;
	section->tries =
		(section->tries << 1 | (run->outcome == LEARN_HIT)) & ((1u << LEARN_TRIES) - 1);
	if (section->tried < LEARN_TRIES)
		section->tried++;
	hits = (uint32_t)__builtin_popcount(section->tries);
	if (hits * 2 < section->tried)
		begin_pause(section);
	else if (hits == LEARN_TRIES)
		section->pauses = 0;
}

void learn(struct profile *profile, const struct observation *run)
{
	struct profile_section *section =
		profile_section_make(profile, run->build_id, run->model ? run->model : "");

	section->learned_s = run->realtime_s;
	learn_device(section, (enum identity_kind)profile->kind, run);
	learn_histories(section, run);
	learn_outcome(section, run);
}
