/* Every rule of when, at which moment, on which device and for how long. */
#include "profile/decide.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000u
#define S 1000000u
#define GIB ((uint64_t)1 << 30)
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* A torch-like program: looks up cuInit 0.2 s after its start, calls it 2.7 s later. */
static struct profile_section torch_section(void)
{
	struct profile_section section = {
		.runs = 4,
		.recent = 4,
		.used = 0xf,
		.context = 0xf,
		.init_us = 10 * MS,
		.context_us = 120 * MS,
		.rule = PROFILE_RULE_ORDINAL,
		.ordinal = 0,
		.context_count = 1,
		.contexts = {{.kind = PROFILE_PRIMARY}},
	};

	for (int i = 0; i < 4; i++) {
		section.start_lead_us[i] = 2900 * MS;
		section.lookup_lead_us[i] = 2700 * MS;
	}
	return section;
}

/* A C program that works for 150 ms, then looks up and calls at once. */
static struct profile_section direct_section(void)
{
	struct profile_section section = torch_section();

	for (int i = 0; i < 4; i++) {
		section.start_lead_us[i] = 150 * MS;
		section.lookup_lead_us[i] = 1 * MS;
	}
	return section;
}

static struct situation situation_of(const struct profile_section *section)
{
	return (struct situation){
		.section = section,
		.kind = IDENTITY_SCRIPT,
		.is_undo_proven = true,
		.is_getenv_redirected = true,
	};
}

static void set_leads(struct profile_section *section, uint32_t start_us, uint32_t lookup_us)
{
	for (uint32_t i = 0; i < PROFILE_LEADS; i++) {
		section->start_lead_us[i] = start_us;
		section->lookup_lead_us[i] = lookup_us;
	}
}

static void expect(const struct situation *situation, enum decide_what what,
	enum decide_moment moment, const char *label)
{
	struct start_decision decision;

	decide_start(situation, &decision);
	cr_expect_eq(decision.what, what, "%s: %s", label, decision.reason);
	if (what != DECIDE_NOTHING)
		cr_expect_eq(decision.moment, moment, "%s: %s", label, decision.reason);
	cr_expect_not_null(decision.reason, "%s", label);
}

Test(decide, nothing_is_done_for_a_program_that_is_not_known)
{
	struct profile_section section = {0};
	struct situation situation = situation_of(NULL);

	expect(&situation, DECIDE_NOTHING, 0, "no section");
	situation.section = &section;
	expect(&situation, DECIDE_NOTHING, 0, "no run");
}

Test(decide, what_forbids_it_whatever_was_learned_or_told)
{
	struct profile_section section = torch_section();
	struct situation situation;

	for (int told = 0; told < 2; told++) {
		situation = situation_of(&section);
		situation.mode = told ? SPECULATE_ALWAYS : SPECULATE_AUTO;
		situation.is_chosen = situation.is_eager = told;
		expect(&situation, DECIDE_CONTEXT, DECIDE_AT_LOOKUP, "nothing forbids it");
		situation.is_undo_proven = false;
		expect(&situation, DECIDE_NOTHING, 0, "undo not proven");
		situation.is_undo_proven = true;
		situation.is_tool = true;
		expect(&situation, DECIDE_NOTHING, 0, "tool");
		situation.is_tool = false;
		situation.is_mps = true;
		expect(&situation, DECIDE_NOTHING, 0, "MPS");
	}
	situation = situation_of(&section);
	situation.mode = SPECULATE_OFF;
	situation.is_chosen = situation.is_eager = true;
	expect(&situation, DECIDE_NOTHING, 0, "off");
}

Test(decide, histories_that_speak_for_it_and_against_it)
{
	static const struct {
		const char *label;
		uint32_t recent, used, context, env_lookup, fork_lookup, pause;
		enum decide_what what;
	} rows[] = {
		{"one run", 1, 1, 1, 0, 0, 0, DECIDE_CONTEXT},
		{"one run with cuInit alone", 1, 1, 0, 0, 0, 0, DECIDE_INIT},
		{"one run without CUDA", 1, 0, 0, 0, 0, 0, DECIDE_NOTHING},
		{"the latest run without CUDA", 8, 0xfe, 0xfe, 0, 0, 0, DECIDE_NOTHING},
		{"every second run", 8, 0x55, 0x55, 0, 0, 0, DECIDE_CONTEXT},
		{"fewer than every second run", 8, 0x51, 0x51, 0, 0, 0, DECIDE_NOTHING},
		{"one of two", 2, 1, 1, 0, 0, 0, DECIDE_CONTEXT},
		{"one of three", 3, 1, 1, 0, 0, 0, DECIDE_NOTHING},
		{"a long history, CUDA lately", 32, 0xff, 0xff, 0, 0, 0, DECIDE_CONTEXT},
		{"a long history, CUDA long ago", 32, 0xffffff01, ~0u, 0, 0, 0, DECIDE_NOTHING},
		{"a context in the latest run only", 8, 0xff, 0x01, 0, 0, 0, DECIDE_INIT},
		{"a context in all but the latest", 8, 0xff, 0xfe, 0, 0, 0, DECIDE_INIT},
		{"environment changed in this run", 4, 0xf, 0xf, 1, 0, 0, DECIDE_NOTHING},
		{"environment changed 31 runs ago", 32, ~0u, ~0u, 1u << 31, 0, 0, DECIDE_NOTHING},
		{"a bit that is no run", 4, 0xf, 0xf, 1u << 4, 0, 0, DECIDE_CONTEXT},
		{"forked in the latest run", 4, 0xf, 0xf, 0, 1, 0, DECIDE_NOTHING},
		{"forked once, lately", 8, 0xff, 0xff, 0, 0x80, 0, DECIDE_NOTHING},
		{"paused", 4, 0xf, 0xf, 0, 0, 1, DECIDE_NOTHING},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct profile_section section = torch_section();
		struct situation situation = situation_of(&section);

		section.recent = section.runs = rows[i].recent;
		section.used = rows[i].used;
		section.context = rows[i].context;
		section.env_after_lookup = rows[i].env_lookup;
		section.forked_after_lookup = rows[i].fork_lookup;
		section.pause = rows[i].pause;
		expect(&situation, rows[i].what, DECIDE_AT_LOOKUP, rows[i].label);
	}
}

Test(decide, spawned_children_must_all_have_used_cuda)
{
	static const struct {
		uint32_t recent, used;
		enum decide_what what;
	} rows[] = {
		{7, 0x7f, DECIDE_NOTHING},
		{8, 0xff, DECIDE_CONTEXT},
		{8, 0x7f, DECIDE_NOTHING},
		{8, 0xfe, DECIDE_NOTHING},
		{9, 0xff, DECIDE_NOTHING},
		{32, ~0u, DECIDE_CONTEXT},
		{32, ~0u >> 1, DECIDE_NOTHING},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct profile_section section = torch_section();
		struct situation situation = situation_of(&section);

		situation.kind = IDENTITY_CHILD;
		section.recent = section.runs = rows[i].recent;
		section.used = section.context = rows[i].used;
		expect(&situation, rows[i].what, DECIDE_AT_LOOKUP, "child");
	}
}

Test(decide, the_two_moments)
{
	static const struct {
		const char *label;
		uint32_t start_us, lookup_us, init_us, context_us, env_start, fork_start;
		bool is_redirected;
		enum decide_what what;
		enum decide_moment moment;
	} rows[] = {
		{"torch", 2900 * MS, 2700 * MS, 10 * MS, 120 * MS, 0, 0, true, DECIDE_CONTEXT,
			DECIDE_AT_LOOKUP},
		{"torch that sets its environment first", 2900 * MS, 2700 * MS, 10 * MS, 120 * MS,
			1, 0, true, DECIDE_CONTEXT, DECIDE_AT_LOOKUP},
		{"works 150 ms, then looks up and calls", 150 * MS, 200, 10 * MS, 120 * MS, 0, 0,
			true, DECIDE_CONTEXT, DECIDE_AT_START},
		{"the same, getenv not redirected", 150 * MS, 200, 10 * MS, 120 * MS, 0, 0, false,
			DECIDE_NOTHING, 0},
		{"the same, sets its environment", 150 * MS, 200, 10 * MS, 120 * MS, 1, 0, true,
			DECIDE_NOTHING, 0},
		{"the same, forks", 150 * MS, 200, 10 * MS, 120 * MS, 0, 1, true, DECIDE_NOTHING,
			0},
		{"calls at once", 2 * MS, 1 * MS, 10 * MS, 120 * MS, 0, 0, true, DECIDE_NOTHING, 0},
		{"calls at once, lookup unseen", 2 * MS, 0, 10 * MS, 120 * MS, 0, 0, true,
			DECIDE_NOTHING, 0},
		{"lookup unseen", 500 * MS, 0, 10 * MS, 120 * MS, 0, 0, true, DECIDE_CONTEXT,
			DECIDE_AT_START},
		{"looks up at its very start", 100 * MS, 99 * MS, 10 * MS, 120 * MS, 0, 0, true,
			DECIDE_CONTEXT, DECIDE_AT_LOOKUP},
		{"half of it fits behind the lookup", 200 * MS, 80 * MS, 10 * MS, 120 * MS, 0, 0,
			true, DECIDE_CONTEXT, DECIDE_AT_START},
		{"the same, sets its environment", 200 * MS, 80 * MS, 10 * MS, 120 * MS, 1, 0, true,
			DECIDE_CONTEXT, DECIDE_AT_LOOKUP},
		{"fits behind the lookup with the margin", 900 * MS, 163 * MS, 10 * MS, 120 * MS, 0,
			0, true, DECIDE_CONTEXT, DECIDE_AT_LOOKUP},
		{"fits behind the lookup without it", 900 * MS, 162 * MS, 10 * MS, 120 * MS, 0, 0,
			true, DECIDE_CONTEXT, DECIDE_AT_START},
		{"and is ready before the call", 40 * MS, 1 * MS, 100, 100, 0, 0, true,
			DECIDE_CONTEXT, DECIDE_AT_START},
		{"durations not known", 900 * MS, 399 * MS, 0, 0, 0, 0, true, DECIDE_CONTEXT,
			DECIDE_AT_START},
		{"durations not known, long lead", 900 * MS, 400 * MS, 0, 0, 0, 0, true,
			DECIDE_CONTEXT, DECIDE_AT_LOOKUP},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct profile_section section = torch_section();
		struct situation situation = situation_of(&section);

		set_leads(&section, rows[i].start_us, rows[i].lookup_us);
		section.init_us = rows[i].init_us;
		section.context_us = rows[i].context_us;
		section.env_after_start = rows[i].env_start;
		section.forked_after_start = rows[i].fork_start;
		situation.is_getenv_redirected = rows[i].is_redirected;
		expect(&situation, rows[i].what, rows[i].moment, rows[i].label);
	}
}

Test(decide, what_the_user_told)
{
	static const struct {
		const char *label;
		bool is_chosen, is_eager, is_redirected;
		uint32_t recent, used, context, env_lookup, pause;
		enum decide_what what;
		enum decide_moment moment;
	} rows[] = {
		{"always, unknown", 1, 0, 1, 0, 0, 0, 0, 0, DECIDE_CONTEXT, DECIDE_AT_LOOKUP},
		{"always, a descendant", 0, 0, 1, 0, 0, 0, 0, 0, DECIDE_NOTHING, 0},
		{"always, a known descendant", 0, 0, 1, 4, 15, 15, 0, 0, DECIDE_CONTEXT,
			DECIDE_AT_LOOKUP},
		{"eager, unknown", 1, 1, 1, 0, 0, 0, 0, 0, DECIDE_CONTEXT, DECIDE_AT_START},
		{"eager, getenv not redirected", 1, 1, 0, 0, 0, 0, 0, 0, DECIDE_CONTEXT,
			DECIDE_AT_LOOKUP},
		{"eager, known", 1, 1, 1, 4, 15, 15, 0, 0, DECIDE_CONTEXT, DECIDE_AT_LOOKUP},
		{"eager, paused", 1, 1, 1, 4, 15, 15, 0, 9, DECIDE_CONTEXT, DECIDE_AT_LOOKUP},
		{"eager, never used CUDA", 1, 1, 1, 4, 0, 0, 0, 0, DECIDE_CONTEXT, DECIDE_AT_START},
		{"eager, cuInit alone", 1, 1, 1, 4, 15, 0, 0, 0, DECIDE_INIT, DECIDE_AT_LOOKUP},
		{"eager, changes its environment", 1, 1, 1, 4, 15, 15, 1, 0, DECIDE_NOTHING, 0},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct profile_section section = torch_section();
		struct situation situation = situation_of(&section);

		section.recent = section.runs = rows[i].recent;
		section.used = rows[i].used;
		section.context = rows[i].context;
		section.env_after_lookup = rows[i].env_lookup;
		section.pause = rows[i].pause;
		situation.mode = SPECULATE_ALWAYS;
		situation.is_chosen = rows[i].is_chosen;
		situation.is_eager = rows[i].is_eager;
		situation.is_getenv_redirected = rows[i].is_redirected;
		expect(&situation, rows[i].what, rows[i].moment, rows[i].label);
	}
}

Test(decide, eager_programs_that_fork_or_set_their_environment_early_are_left_alone_at_start)
{
	struct profile_section section = direct_section();
	struct situation situation = situation_of(&section);

	situation.mode = SPECULATE_ALWAYS;
	situation.is_chosen = situation.is_eager = true;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_START, "clean");
	section.used = 0; /* so that only the word of its user counts */
	section.forked_after_start = 1;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_LOOKUP, "forks");
	section.forked_after_start = 0;
	section.env_after_start = 1;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_LOOKUP, "sets its environment");
}

Test(decide, an_executable_that_nobody_knows_may_be_a_tool_before_the_program)
{
	struct situation situation = situation_of(NULL);

	situation.mode = SPECULATE_ALWAYS;
	situation.is_chosen = situation.is_eager = true;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_START, "a script");
	situation.kind = IDENTITY_EXECUTABLE;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_LOOKUP, "an executable");
}

Test(decide, when_it_is_given_back)
{
	static const struct {
		const char *label;
		enum identity_kind kind;
		uint32_t start_us, lookup_us;
		uint64_t setting_us, wanted_us;
	} rows[] = {
		{"short lead", IDENTITY_SCRIPT, 2900 * MS, 2700 * MS, 0, 10 * S},
		{"long lead", IDENTITY_SCRIPT, 21 * S, 20 * S, 0, 60 * S},
		{"kernel", IDENTITY_NOTEBOOK, 2900 * MS, 2700 * MS, 0, 60 * S},
		{"kernel, long lead", IDENTITY_NOTEBOOK, 31 * S, 30 * S, 0, 90 * S},
		{"set", IDENTITY_SCRIPT, 21 * S, 20 * S, 5 * S, 5 * S},
		{"longest lead", IDENTITY_SCRIPT, UINT32_MAX, UINT32_MAX, 0,
			3 * (uint64_t)UINT32_MAX},
		{"from process start", IDENTITY_SCRIPT, 5 * S, 1 * MS, 0, 15 * S},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct profile_section section = torch_section();
		struct situation situation = situation_of(&section);
		struct start_decision decision;

		set_leads(&section, rows[i].start_us, rows[i].lookup_us);
		situation.kind = rows[i].kind;
		situation.give_back_us = rows[i].setting_us;
		decide_start(&situation, &decision);
		cr_expect_eq(decision.give_back_us, rows[i].wanted_us, "%s", rows[i].label);
	}
}

Test(decide, the_middle_of_the_leads)
{
	static const struct {
		uint32_t leads[PROFILE_LEADS], wanted;
	} rows[] = {
		{{0}, 0},
		{{7}, 7},
		{{9, 1, 5}, 5},
		{{9, 1}, 1},
		{{0, 9, 0, 1, 5, 0}, 5},
		{{8, 7, 6, 5, 4, 3, 2, 1}, 4},
		{{1, 1, 1, 1, 1, 1, 1, UINT32_MAX}, 1},
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_eq(decide_lead(rows[i].leads), rows[i].wanted, "row %zu", i);
}

Test(decide, a_spare_begins_at_once_or_not_at_all)
{
	struct profile_section section = torch_section(), direct = direct_section();
	struct situation situation = situation_of(&section);
	struct start_decision decision;

	situation.is_spare = true;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_START, "a program that looks up early");
	/* What its plain start would be too late for. */
	set_leads(&direct, 0, 0);
	situation.section = &direct;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_START, "a program that calls at once");
	section.start_lead_us[0] = section.start_lead_us[1] = section.start_lead_us[2] =
		3600 * S - 1;
	situation.section = &section;
	decide_start(&situation, &decision);
	cr_expect_eq(decision.give_back_us, DECIDE_GIVE_BACK_US, "leads in spares count for none");
	section.env_after_start = 1;
	expect(&situation, DECIDE_NOTHING, 0, "one that sets its environment before the lookup");
	situation.section = NULL;
	expect(&situation, DECIDE_NOTHING, 0, "nothing learned");
}

Test(decide, a_spare_that_is_told_a_device_asks_no_profile)
{
	struct profile_section section = torch_section();
	struct situation situation = situation_of(NULL);

	situation.is_spare = situation.has_gpu = true;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_START, "nothing learned");
	section.env_after_lookup = section.forked_after_lookup = section.pause = 1;
	situation.section = &section;
	expect(&situation, DECIDE_CONTEXT, DECIDE_AT_START, "bad experience");
	situation.is_undo_proven = false;
	expect(&situation, DECIDE_NOTHING, 0, "no undo");
	situation.is_undo_proven = true;
	situation.mode = SPECULATE_OFF;
	expect(&situation, DECIDE_NOTHING, 0, "off");
}
