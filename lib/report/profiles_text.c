/* Words for what is in a profile. Pure; in tools only. */
#include "report/profiles_text.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

const struct profile_section *profiles_latest(const struct profile *profile)
{
	const struct profile_section *latest = NULL;

	for (uint32_t i = 0; i < profile->section_count; i++)
		if (!latest || profile->sections[i].learned_s > latest->learned_s)
			latest = &profile->sections[i];
	return latest;
}

uint64_t profiles_learned_s(const struct profile *profile)
{
	const struct profile_section *latest = profiles_latest(profile);

	return latest ? latest->learned_s : 0;
}

void profiles_decide(const struct profile *profile, const struct profile_section *section,
	struct start_decision *ret_decision)
{
	struct situation situation = {
		.section = section,
		.kind = (enum identity_kind)profile->kind,
		.mode = SPECULATE_AUTO,
		.is_undo_proven = true,
		.is_getenv_redirected = true,
	};

	decide_start(&situation, ret_decision);
}

const char *profiles_what(const struct start_decision *decision)
{
	static const char *const texts[] = {
		[DECIDE_NOTHING] = "nothing",
		[DECIDE_INIT] = "cuInit",
		[DECIDE_CONTEXT] = "cuInit and context",
	};

	return texts[decision->what];
}

const char *profiles_moment(const struct start_decision *decision)
{
	if (decision->what == DECIDE_NOTHING)
		return "";
	return decision->moment == DECIDE_AT_START ? " at start" : " at lookup";
}

void profiles_time(uint64_t realtime_s, char ret_text[PROFILES_TIME_SIZE])
{
	char text[CLOCK_TEXT_SIZE];
	static const char never[] = "never";

	if (!realtime_s) {
		memcpy(ret_text, never, sizeof(never));
		return;
	}
	/* Up to year 9999, whatever a file says. */
	clock_format((realtime_s < 253402300799u ? realtime_s : 253402300799u) * 1000000, text);
	memcpy(ret_text, text, PROFILES_TIME_SIZE - 2);
	memcpy(ret_text + PROFILES_TIME_SIZE - 2, "Z", 2);
}

void profiles_rule(const struct profile_section *section, char ret_text[PROFILES_RULE_SIZE])
{
	static const char *const texts[PROFILE_RULE_COUNT] = {
		[PROFILE_RULE_NONE] = "no rule known",
		[PROFILE_RULE_ONLY] = "the only visible one",
		[PROFILE_RULE_RANK] = "the launcher's rank",
	};

	if (section->rule == PROFILE_RULE_ORDINAL)
		snprintf(ret_text, PROFILES_RULE_SIZE, "always %d%s", section->ordinal,
			section->several ? ", but in several instances" : "");
	else
		snprintf(ret_text, PROFILES_RULE_SIZE, "%s", texts[section->rule]);
}

void profiles_build(
	const struct profile_section *section, char ret_text[2 * PROFILE_BUILD_SIZE + 1])
{
	size_t size = PROFILE_BUILD_SIZE;

	while (size > 1 && !section->build_id[size - 1])
		size--;
	digest_format(section->build_id, size, ret_text);
}
