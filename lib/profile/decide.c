/* Whether and when to speculate. Pure functions: in the user's process, called from the constructor
 * and from the first lookup of cuInit; no system call, no allocation. */
#include "profile/decide.h"

#define USED_WINDOW 0xffu /* of the last 8 runs at least half must have used CUDA */

static unsigned int count_bits(uint32_t bits)
{
	return (unsigned int)__builtin_popcount(bits);
}

uint32_t decide_lead(const uint32_t leads[PROFILE_LEADS])
{
	uint32_t sorted[PROFILE_LEADS];
	uint32_t count = 0;

	for (uint32_t i = 0; i < PROFILE_LEADS; i++) {
		uint32_t at = count;

		if (!leads[i])
			continue;
		for (; at > 0 && sorted[at - 1] > leads[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = leads[i];
		count++;
	}
	return count ? sorted[(count - 1) / 2] : 0;
}

/* Is a bit of the history among its runs, all of which count? */
static bool ever(const struct profile_section *section, uint32_t history)
{
	uint32_t runs = section->recent >= 32 ? UINT32_MAX : (1u << section->recent) - 1;

	return (history & runs) != 0;
}

/* Did the latest run, and at least every second one lately, do it? */
static bool usually(const struct profile_section *section, uint32_t history)
{
	unsigned int recent = section->recent < 8 ? section->recent : 8;
	uint32_t window = history & USED_WINDOW & ((1u << recent) - 1);

	return recent && (history & 1) && count_bits(window) * 2 >= recent;
}

static void nothing(struct start_decision *decision, const char *reason)
{
	decision->what = DECIDE_NOTHING;
	decision->reason = reason;
}

/* Did it use CUDA, so that it will again? All children of one role share a profile: ranks, and
 * loaders of data that never touch the GPU. So for them every known run must have. */
static bool is_user_of_cuda(const struct situation *situation)
{
	const struct profile_section *section = situation->section;

	if (situation->kind != IDENTITY_CHILD)
		return usually(section, section->used);
	return section->recent >= DECIDE_CHILD_RUNS && !ever(section, ~section->used);
}

/* What forbids speculation whatever the profile says. */
static const char *forbidden(const struct situation *situation)
{
	if (situation->mode == SPECULATE_OFF)
		return "HEARTH_SPECULATE=off";
	if (!situation->is_undo_proven)
		return "the undo is not proven for this driver build";
	if (situation->is_tool)
		return "a tool is injected";
	if (situation->is_mps)
		return "an MPS client";
	return NULL;
}

/* The time the speculation needs before the program calls. */
static uint64_t needed_us(const struct profile_section *section, enum decide_what what)
{
	uint64_t init = section && section->init_us ? section->init_us : DECIDE_INIT_DEFAULT_US;
	uint64_t context =
		section && section->context_us ? section->context_us : DECIDE_CONTEXT_DEFAULT_US;

	return what == DECIDE_CONTEXT ? init + context : init;
}

/* Between start and lookup the program does nothing that a speculation would be squashed for. */
static bool is_start_allowed(const struct situation *situation)
{
	const struct profile_section *section = situation->section;

	return situation->is_getenv_redirected &&
	       (!section || (!ever(section, section->env_after_start) &&
				    !ever(section, section->forked_after_start)));
}

/* The moment for a program with a profile. Later is safer: a lookup comes after a script has set
 * its environment. So the first moment is taken only where the second comes too late. */
static void choose_moment(const struct situation *situation, struct start_decision *decision)
{
	const struct profile_section *section = situation->section;
	uint32_t from_start = decide_lead(section->start_lead_us);
	uint32_t from_lookup = decide_lead(section->lookup_lead_us);
	uint64_t needed = needed_us(section, decision->what);
	bool is_early_allowed = is_start_allowed(situation);

	decision->moment = DECIDE_AT_LOOKUP;
	if (from_lookup >= DECIDE_LEAD_MIN_US &&
		from_lookup >= needed + needed * DECIDE_MARGIN_PERCENT / 100) {
		decision->reason = "the lookup comes early enough";
		return;
	}
	if (is_early_allowed && from_start >= DECIDE_LEAD_MIN_US &&
		from_start >= from_lookup + DECIDE_LEAD_MIN_US) {
		decision->moment = DECIDE_AT_START;
		decision->reason = "the lookup comes too late";
		return;
	}
	if (from_lookup >= DECIDE_LEAD_MIN_US) {
		decision->reason = is_early_allowed ? "the lookup comes about as early as the start"
						    : "process start is too early for this program";
		return;
	}
	nothing(decision, is_early_allowed ? "it calls cuInit at once"
					   : "process start is too early, the lookup too late");
}

/* A spare has no later moment: what it does ahead it does before it knows its program. */
static void choose_for_spare(const struct situation *situation, struct start_decision *decision)
{
	decision->moment = DECIDE_AT_START;
	decision->reason = "a spare, by the profile";
	if (!is_start_allowed(situation))
		nothing(decision, "process start is too early for what a spare runs");
}

static uint64_t give_back_us(const struct situation *situation, enum decide_moment moment)
{
	const struct profile_section *section = situation->section;
	uint64_t rule = situation->kind == IDENTITY_NOTEBOOK ? DECIDE_GIVE_BACK_KERNEL_US
							     : DECIDE_GIVE_BACK_US;
	uint64_t lead = 0;

	if (situation->give_back_us)
		return situation->give_back_us;
	if (section && !situation->is_spare)
		lead = (uint64_t)DECIDE_GIVE_BACK_LEADS *
		       decide_lead(moment == DECIDE_AT_START ? section->start_lead_us
							     : section->lookup_lead_us);
	return lead > rule ? lead : rule;
}

/* Nothing is known of the program, but its user told us. */
static void decide_unknown(const struct situation *situation, struct start_decision *decision)
{
	decision->what = DECIDE_CONTEXT;
	decision->moment = DECIDE_AT_LOOKUP;
	decision->reason = "HEARTH_SPECULATE=always";
	/* Under a bare ENV this may be a shell: only who looks up cuInit is meant. And an
	 * executable may be a tool before the program, to which a second thread is no help: unshare
	 * and setpriv fail beside one. */
	if (situation->is_eager && situation->kind != IDENTITY_EXECUTABLE) {
		decision->moment = is_start_allowed(situation) ? DECIDE_AT_START : DECIDE_AT_LOOKUP;
		decision->reason = "hearth run --eager";
	}
}

static void decide_known(
	const struct situation *situation, bool is_told, struct start_decision *decision)
{
	const struct profile_section *section = situation->section;

	if (ever(section, section->env_after_lookup))
		nothing(decision, "it changes the driver's environment before it calls cuInit");
	else if (ever(section, section->forked_after_lookup))
		nothing(decision, "it forks before it calls cuInit");
	else if (!is_told && !is_user_of_cuda(situation))
		nothing(decision, situation->kind == IDENTITY_CHILD
					  ? "not all spawned children are known to use CUDA"
					  : "its latest runs did not use CUDA");
	else if (!is_told && section->pause)
		nothing(decision, "guesses failed lately: paused");
	else if (!usually(section, section->used))
		decide_unknown(situation, decision);
	else {
		decision->what = usually(section, section->context) ? DECIDE_CONTEXT : DECIDE_INIT;
		if (situation->is_spare)
			choose_for_spare(situation, decision);
		else
			choose_moment(situation, decision);
	}
}

void decide_start(const struct situation *situation, struct start_decision *ret_decision)
{
	const char *reason = forbidden(situation);
	bool is_told = situation->mode == SPECULATE_ALWAYS && situation->is_chosen;

	*ret_decision = (struct start_decision){.what = DECIDE_NOTHING, .reason = reason};
	if (reason)
		return;
	if (situation->has_gpu)
		*ret_decision = (struct start_decision){.what = DECIDE_CONTEXT,
			.moment = DECIDE_AT_START,
			.reason = "hearth spare start --gpu"};
	else if (situation->section && situation->section->recent)
		decide_known(situation, is_told, ret_decision);
	else if (is_told)
		decide_unknown(situation, ret_decision);
	else
		nothing(ret_decision, "nothing learned yet");
	if (ret_decision->what != DECIDE_NOTHING)
		ret_decision->give_back_us = give_back_us(situation, ret_decision->moment);
}
