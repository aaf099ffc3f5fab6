/* On which device, with which contexts, and where there is room. */
#include "profile/decide.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define GIB ((uint64_t)1 << 30)
#define DEVICES 8
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static struct device_state devices[DEVICES];

static void fill(void)
{
	for (int i = 0; i < DEVICES; i++)
		devices[i] = (struct device_state){
			.is_memory_known = true,
			.free_bytes = 139 * GIB,
			.total_bytes = 140 * GIB,
		};
}

TestSuite(device, .init = fill);

Test(device, ranks)
{
	static const struct {
		const char *values[4];
		int rank;
	} rows[] = {
		{{NULL, NULL, NULL, NULL}, DECIDE_NO_RANK},
		{{"3", NULL, NULL, NULL}, 3},
		{{NULL, "2", NULL, NULL}, 2},
		{{NULL, NULL, "1", NULL}, 1},
		{{NULL, NULL, NULL, "0"}, 0},
		{{"3", "0", NULL, NULL}, 3}, /* torchrun inside srun */
		{{"", "4", NULL, NULL}, 4},
		{{"x", "4", NULL, NULL}, DECIDE_BAD_RANK},
		{{"-1", NULL, NULL, NULL}, DECIDE_BAD_RANK},
		{{"1x", NULL, NULL, NULL}, DECIDE_BAD_RANK},
		{{" 1", NULL, NULL, NULL}, DECIDE_BAD_RANK},
		{{"99999999999999999999", NULL, NULL, NULL}, DECIDE_BAD_RANK},
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_eq(decide_rank(rows[i].values, 4), rows[i].rank, "row %zu", i);
}

Test(device, ranks_of_the_environment)
{
	static const char *const names[] = {
		"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"};
	char value[2] = "0";

	for (size_t i = 0; i < COUNT(names); i++)
		unsetenv(names[i]);
	cr_assert_eq(decide_rank_of_environment(), DECIDE_NO_RANK);
	for (int i = COUNT(names) - 1; i >= 0; i--) {
		value[0] = (char)('0' + i);
		setenv(names[i], value, 1);
		cr_assert_eq(decide_rank_of_environment(), i, "%s", names[i]);
	}
}

Test(device, rules)
{
	static const struct {
		const char *label;
		enum identity_kind kind;
		enum profile_rule rule;
		int ordinal, several, visible, rank, wanted;
	} rows[] = {
		{"nothing visible", IDENTITY_SCRIPT, PROFILE_RULE_ONLY, -1, 0, 0, -1, -1},
		{"one visible", IDENTITY_SCRIPT, PROFILE_RULE_NONE, -1, 0, 1, -1, 0},
		{"one visible, several instances", IDENTITY_SCRIPT, PROFILE_RULE_ONLY, -1, 1, 1, -1,
			0},
		{"one visible, rank 5", IDENTITY_SCRIPT, PROFILE_RULE_RANK, -1, 0, 1, 5, 0},
		{"one visible, bad rank", IDENTITY_SCRIPT, PROFILE_RULE_ONLY, -1, 0, 1, -2, 0},
		{"one visible, child", IDENTITY_CHILD, PROFILE_RULE_NONE, -1, 0, 1, -1, 0},
		{"rank", IDENTITY_SCRIPT, PROFILE_RULE_RANK, -1, 0, 4, 3, 3},
		{"rank, nothing learned", IDENTITY_SCRIPT, PROFILE_RULE_NONE, -1, 0, 4, 2, 2},
		{"rank beats the learned device", IDENTITY_SCRIPT, PROFILE_RULE_ORDINAL, 1, 0, 4, 3,
			3},
		{"rank too high", IDENTITY_SCRIPT, PROFILE_RULE_ORDINAL, 1, 0, 4, 4, -1},
		{"bad rank", IDENTITY_SCRIPT, PROFILE_RULE_ORDINAL, 1, 0, 4, -2, -1},
		{"learned", IDENTITY_SCRIPT, PROFILE_RULE_ORDINAL, 2, 0, 4, -1, 2},
		{"learned, several instances", IDENTITY_SCRIPT, PROFILE_RULE_ORDINAL, 2, 1, 4, -1,
			-1},
		{"learned, not visible now", IDENTITY_SCRIPT, PROFILE_RULE_ORDINAL, 4, 0, 4, -1,
			-1},
		{"learned by rank, none now", IDENTITY_SCRIPT, PROFILE_RULE_RANK, -1, 0, 4, -1, -1},
		{"learned with one visible", IDENTITY_SCRIPT, PROFILE_RULE_ONLY, -1, 0, 4, -1, -1},
		{"notebook, learned", IDENTITY_NOTEBOOK, PROFILE_RULE_ORDINAL, 1, 0, 2, -1, 1},
		{"child, learned", IDENTITY_CHILD, PROFILE_RULE_ORDINAL, 0, 0, 2, -1, -1},
		{"child, rank", IDENTITY_CHILD, PROFILE_RULE_RANK, -1, 0, 2, 1, -1},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct profile_section section = {
			.rule = rows[i].rule,
			.ordinal = rows[i].ordinal,
			.several = (uint32_t)rows[i].several,
		};
		struct situation situation = {.section = &section, .kind = rows[i].kind};
		struct device_decision decision;

		decide_device(&situation, rows[i].visible, rows[i].rank, devices, &decision);
		cr_expect_eq(decision.device, rows[i].wanted, "%s: %d, %s", rows[i].label,
			decision.device, decision.reason);
		cr_expect_eq(decision.context_count, rows[i].wanted >= 0, "%s", rows[i].label);
	}
}

Test(device, without_a_profile)
{
	struct situation situation = {.kind = IDENTITY_SCRIPT};
	struct device_decision decision;

	decide_device(&situation, 1, DECIDE_NO_RANK, devices, &decision);
	cr_assert_eq(decision.device, 0);
	cr_assert_eq(decision.contexts[0].kind, PROFILE_PRIMARY);
	decide_device(&situation, 2, 1, devices, &decision);
	cr_assert_eq(decision.device, 1);
	cr_assert_eq(decision.contexts[0].device, 1);
	decide_device(&situation, 2, DECIDE_NO_RANK, devices, &decision);
	cr_assert_eq(decision.device, -1);
}

Test(device, probation_means_init_only)
{
	struct profile_section section = {.probation = 1};
	struct situation situation = {.section = &section, .kind = IDENTITY_SCRIPT};
	struct device_decision decision;

	decide_device(&situation, 1, DECIDE_NO_RANK, devices, &decision);
	cr_assert_eq(decision.device, -1);
	section.probation = 0;
	decide_device(&situation, 1, DECIDE_NO_RANK, devices, &decision);
	cr_assert_eq(decision.device, 0);
}

Test(device, room_for_a_context)
{
	static const struct {
		const char *label;
		struct device_state device;
		bool has_room, must_check;
	} rows[] = {
		{"empty", {true, 80 * GIB, 80 * GIB, 0}, true, false},
		{"2 GiB of 16", {true, 2 * GIB, 16 * GIB, 0}, true, false},
		{"less than 2 GiB", {true, 2 * GIB - 1, 16 * GIB, 0}, false, false},
		{"less than 10 %", {true, 7 * GIB, 80 * GIB, 0}, false, false},
		{"10 %", {true, 8 * GIB, 80 * GIB, 0}, true, false},
		{"small and empty", {true, 1 * GIB, 1 * GIB, 0}, false, false},
		{"exclusive process", {true, 80 * GIB, 80 * GIB, 3}, false, false},
		{"prohibited", {true, 80 * GIB, 80 * GIB, 2}, false, false},
		{"exclusive, memory not known", {false, 0, 0, 3}, false, false},
		{"memory not known", {false, 0, 0, 0}, true, true},
	};
	struct situation situation = {.kind = IDENTITY_SCRIPT};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct device_decision decision;

		decide_device(&situation, 1, DECIDE_NO_RANK, &rows[i].device, &decision);
		cr_expect_eq(decision.device == 0, rows[i].has_room, "%s: %s", rows[i].label,
			decision.reason);
		cr_expect_eq(decision.must_check_memory, rows[i].must_check, "%s", rows[i].label);
	}
}

Test(device, the_other_devices_room_does_not_matter)
{
	struct situation situation = {.kind = IDENTITY_SCRIPT};
	struct device_decision decision;

	devices[0].free_bytes = 0;
	decide_device(&situation, 2, 1, devices, &decision);
	cr_assert_eq(decision.device, 1);
	decide_device(&situation, 2, 0, devices, &decision);
	cr_assert_eq(decision.device, -1);
}

#define PRIMARY(device)                                                                            \
	{                                                                                          \
		PROFILE_PRIMARY, 0, 0, device                                                      \
	}
#define CREATED(flags, device)                                                                     \
	{                                                                                          \
		PROFILE_CREATED, 4, flags, device                                                  \
	}

Test(device, contexts_and_their_routing)
{
	static const struct {
		const char *label;
		enum context_mode mode;
		uint32_t count;
		struct profile_context learned[PROFILE_CONTEXTS];
		uint32_t wanted_count;
		struct profile_context wanted[PROFILE_CONTEXTS];
	} rows[] = {
		{"primary", CONTEXT_ADOPT, 1, {PRIMARY(0)}, 1, {PRIMARY(1)}},
		{"primary with flags", CONTEXT_NATIVE, 1, {{PROFILE_PRIMARY, 0, 4, 0}}, 1,
			{{PROFILE_PRIMARY, 0, 4, 1}}},
		{"created, adopted", CONTEXT_ADOPT, 1, {CREATED(8, 0)}, 1, {CREATED(8, 1)}},
		{"created, routed", CONTEXT_PRIMARY, 1, {CREATED(8, 0)}, 1,
			{{PROFILE_PRIMARY, 0, 8, 1}}},
		{"created, native", CONTEXT_NATIVE, 1, {CREATED(8, 0)}, 0, {{0}}},
		{"both, adopted", CONTEXT_ADOPT, 2, {CREATED(8, 0), PRIMARY(0)}, 2,
			{CREATED(8, 1), PRIMARY(1)}},
		{"both, routed", CONTEXT_PRIMARY, 2, {CREATED(8, 0), PRIMARY(0)}, 1,
			{{PROFILE_PRIMARY, 0, 8, 1}}},
		{"both, native", CONTEXT_NATIVE, 2, {CREATED(8, 0), PRIMARY(0)}, 1, {PRIMARY(1)}},
		{"two created", CONTEXT_ADOPT, 2, {CREATED(8, 0), CREATED(0, 0)}, 2,
			{CREATED(8, 1), CREATED(0, 1)}},
		{"on another device too", CONTEXT_ADOPT, 2, {PRIMARY(0), PRIMARY(3)}, 1,
			{PRIMARY(1)}},
		{"as many as fit", CONTEXT_ADOPT, 4,
			{CREATED(1, 0), CREATED(2, 0), CREATED(4, 0), CREATED(8, 0)}, 4,
			{CREATED(1, 1), CREATED(2, 1), CREATED(4, 1), CREATED(8, 1)}},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct profile_section section = {.context_count = rows[i].count};
		struct situation situation = {
			.section = &section,
			.kind = IDENTITY_SCRIPT,
			.contexts = rows[i].mode,
		};
		struct device_decision decision;

		memcpy(section.contexts, rows[i].learned, sizeof(section.contexts));
		decide_device(&situation, 2, 1, devices, &decision);
		cr_expect_eq(decision.device, rows[i].wanted_count ? 1 : -1, "%s: %s",
			rows[i].label, decision.reason);
		cr_expect_eq(decision.context_count, rows[i].wanted_count, "%s", rows[i].label);
		cr_expect_arr_eq(decision.contexts, rows[i].wanted,
			rows[i].wanted_count * sizeof(rows[i].wanted[0]), "%s", rows[i].label);
	}
}

Test(device, a_spare_has_the_one_that_it_was_told)
{
	struct profile_section section = {
		.rule = PROFILE_RULE_ORDINAL, .ordinal = 5, .probation = 1};
	struct situation situation = {.section = &section, .is_spare = true, .has_gpu = true};
	struct device_decision decision;

	for (situation.gpu = 0; situation.gpu < DEVICES + 2; situation.gpu++) {
		decide_device(&situation, DEVICES, 3, devices, &decision);
		cr_expect_eq(decision.device, situation.gpu < DEVICES ? situation.gpu : -1);
	}
	devices[2].free_bytes = GIB;
	situation.gpu = 2;
	decide_device(&situation, DEVICES, DECIDE_NO_RANK, devices, &decision);
	cr_expect_eq(decision.device, -1, "no room");
}
