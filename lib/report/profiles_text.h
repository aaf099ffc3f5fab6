/* Words for what is in a profile; shared by its text and JSON forms. */
#pragma once

#include "profile/decide.h"

#define PROFILES_TIME_SIZE 18 /* "2026-11-30T18:00Z" */
#define PROFILES_RULE_SIZE 48

/* The section learned last, or NULL. */
const struct profile_section *profiles_latest(const struct profile *profile);

/* When its latest run ended; 0: never. */
uint64_t profiles_learned_s(const struct profile *profile);

/* What is decided at the program's next start in auto mode, where nothing else forbids it. */
void profiles_decide(const struct profile *profile, const struct profile_section *section,
	struct start_decision *ret_decision);

/* "nothing", "cuInit", "cuInit and context"; and "", " at start", " at lookup". */
const char *profiles_what(const struct start_decision *decision);
const char *profiles_moment(const struct start_decision *decision);

void profiles_time(uint64_t realtime_s, char ret_text[PROFILES_TIME_SIZE]);
void profiles_rule(const struct profile_section *section, char ret_text[PROFILES_RULE_SIZE]);

/* The driver's build-id in hexadecimal without the padding. */
void profiles_build(
	const struct profile_section *section, char ret_text[2 * PROFILE_BUILD_SIZE + 1]);
