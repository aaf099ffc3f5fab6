/* What runs teach: sequences of runs, and what is decided after each. */
#include "profile/learn.h"
#include "profile/decide.h"
#include "profile/extension.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000u
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static struct profile profile;

static void make(void)
{
	profile_init(&profile, &(struct identity){.kind = IDENTITY_SCRIPT, .name = "train.py"});
}

TestSuite(learn, .init = make);

/* A run like torch's, on this device of two. */
static struct observation run_on(int device)
{
	return (struct observation){
		.build_id = {1},
		.model = "GPU",
		.realtime_s = 1000,
		.is_used = true,
		.start_lead_us = 2900 * MS,
		.lookup_lead_us = 2700 * MS,
		.init_us = 10 * MS,
		.context_us = 120 * MS,
		.visible_count = 2,
		.rank = DECIDE_NO_RANK,
		.context_count = 1,
		.contexts = {{.kind = PROFILE_PRIMARY, .device = device}},
	};
}

static const struct profile_section *section(void)
{
	return &profile.sections[0];
}

static struct start_decision decision(void)
{
	struct situation situation = {
		.section = section(),
		.kind = IDENTITY_SCRIPT,
		.is_undo_proven = true,
		.is_getenv_redirected = true,
	};
	struct start_decision decision;

	decide_start(&situation, &decision);
	return decision;
}

static int device(int visible_count, int rank)
{
	static const struct device_state devices[8];
	struct situation situation = {.section = section(), .kind = IDENTITY_SCRIPT};
	struct device_decision decision;

	decide_device(&situation, visible_count, rank, devices, &decision);
	return decision.device;
}

Test(learn, one_run_is_enough)
{
	struct observation run = run_on(1);

	learn(&profile, &run);
	cr_assert_eq(profile.section_count, 1);
	cr_assert_str_eq(section()->model, "GPU");
	cr_assert_eq(section()->learned_s, 1000);
	cr_assert_eq(decision().what, DECIDE_CONTEXT);
	cr_assert_eq(decision().moment, DECIDE_AT_LOOKUP);
	cr_assert_eq(device(2, DECIDE_NO_RANK), 1);
	cr_assert_eq(device(1, DECIDE_NO_RANK), 0);
}

Test(learn, what_was_learned_can_always_be_written)
{
	static const int devices[] = {0, 1, 7};
	char folder[] = "/tmp/hearth-learn-XXXXXX", command[64];

	cr_assert_not_null(mkdtemp(folder));
	for (size_t i = 0; i < 300; i++) {
		struct observation run = run_on(devices[i % COUNT(devices)]);

		run.model = i % 20 ? "GPU" : NULL;
		run.build_id[0] = (uint8_t)(i % 11);
		run.visible_count = (int)(i % 9);
		run.rank = (int)(i % 5) - 2;
		run.is_used = i % 3;
		run.context_count = (uint32_t)(i % (PROFILE_CONTEXTS + 1));
		for (uint32_t c = 0; c < run.context_count; c++)
			run.contexts[c] = (struct profile_context){.kind = PROFILE_PRIMARY};
		run.outcome = (enum learn_outcome)(i % 5);
		run.start_lead_us = UINT64_MAX - i;
		learn(&profile, &run);
		cr_assert_eq(profile_write(folder, &profile, NULL), 0, "run %zu", i);
	}
	cr_assert_eq(profile.section_count, PROFILE_SECTIONS);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

Test(learn, the_rule_for_its_device)
{
	static const struct {
		const char *label;
		int visible, rank, device;
		enum profile_rule rule;
		int ordinal;
	} rows[] = {
		{"one visible", 1, -1, 0, PROFILE_RULE_ONLY, -1},
		{"one visible to each rank", 1, 3, 0, PROFILE_RULE_ONLY, -1},
		{"its rank", 4, 3, 3, PROFILE_RULE_RANK, -1},
		{"not its rank", 4, 0, 2, PROFILE_RULE_NONE, -1},
		{"bad rank", 4, -2, 2, PROFILE_RULE_NONE, -1},
		{"no rank", 4, -1, 2, PROFILE_RULE_ORDINAL, 2},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct observation run = run_on(rows[i].device);

		make();
		run.visible_count = rows[i].visible;
		run.rank = rows[i].rank;
		learn(&profile, &run);
		cr_expect_eq(section()->rule, (uint32_t)rows[i].rule, "%s", rows[i].label);
		cr_expect_eq(section()->ordinal, rows[i].ordinal, "%s", rows[i].label);
	}
}

Test(learn, a_run_without_a_context_leaves_the_rule_alone)
{
	struct observation run = run_on(1);

	learn(&profile, &run);
	run.context_count = 0;
	learn(&profile, &run);
	cr_assert_eq(section()->ordinal, 1);
	cr_assert_eq(section()->context_count, 1);
	cr_assert_eq(decision().what, DECIDE_INIT);
}

/* One launch of four ranks, of which each takes this device. */
static void launch(const int devices[4])
{
	for (int rank = 0; rank < 4; rank++) {
		struct observation run = run_on(devices[rank]);

		run.visible_count = 4;
		run.rank = rank;
		learn(&profile, &run);
	}
}

Test(learn, ranks_for_which_the_rule_holds_do_not_end_another_ones_probation)
{
	static const int own[4] = {0, 1, 2, 3};
	static const int wrong[][4] = {
		{3, 2, 1, 0}, {1, 1, 2, 3}, {0, 0, 2, 3}, {0, 1, 0, 1}, {0, 1, 2, 0}, {0, 0, 0, 0}};

	for (size_t row = 0; row < COUNT(wrong); row++) {
		make();
		for (int i = 0; i < 4; i++) {
			launch(wrong[row]);
			for (int rank = 0; rank < 4; rank++)
				cr_expect_eq(device(4, rank), -1, "row %zu, rank %d", row, rank);
		}
		for (int i = 0; i < 3; i++) {
			cr_expect_eq(device(4, 1), -1, "row %zu", row);
			launch(own);
		}
		for (int rank = 0; rank < 4; rank++)
			cr_expect_eq(device(4, rank), rank, "row %zu", row);
	}
}

Test(learn, a_probation_ends_where_the_wrong_rank_has_no_device_any_more)
{
	static const int wrong[4] = {0, 1, 2, 0};

	launch(wrong);
	for (int i = 0; i < 3; i++) {
		struct observation run = run_on(1);

		cr_assert_eq(device(2, 1), -1);
		run.rank = 1;
		learn(&profile, &run);
	}
	cr_assert_eq(device(2, 1), 1);
}

Test(learn, several_instances_at_a_time_forbid_the_learned_device)
{
	struct observation run = run_on(1);

	run.is_several = true;
	learn(&profile, &run);
	cr_assert_eq(device(2, DECIDE_NO_RANK), -1);
	cr_assert_eq(device(2, 0), 0);
	run.is_several = false;
	for (int i = 0; i < 32; i++)
		learn(&profile, &run);
	cr_assert_eq(device(2, DECIDE_NO_RANK), 1, "32 runs later it is forgotten");
}

Test(learn, a_wrong_device_costs_three_clean_runs)
{
	struct observation run = run_on(0);

	learn(&profile, &run);
	cr_assert_eq(device(2, DECIDE_NO_RANK), 0);
	run = run_on(1); /* 0 was guessed */
	run.is_wrong_device = true;
	run.outcome = LEARN_SQUASHED;
	learn(&profile, &run);
	run = run_on(1);
	for (int clean = 0; clean < 3; clean++) {
		cr_assert_eq(device(2, DECIDE_NO_RANK), -1, "after %d clean runs", clean);
		learn(&profile, &run);
	}
	cr_assert_eq(device(2, DECIDE_NO_RANK), 1);
}

Test(learn, clean_runs_in_between_do_not_add_up)
{
	struct observation first = run_on(0), second = run_on(1);

	learn(&profile, &first);
	for (int i = 0; i < 10; i++) { /* it takes another device in every third run */
		learn(&profile, &second);
		learn(&profile, &first);
		learn(&profile, &first);
		cr_assert_eq(device(2, DECIDE_NO_RANK), -1, "round %d", i);
	}
}

Test(learn, a_rank_that_is_not_the_device)
{
	struct observation run = run_on(2); /* SLURM_LOCALID=0 of a job of one task */

	run.visible_count = 4;
	run.rank = 0;
	for (int i = 0; i < 5; i++) {
		learn(&profile, &run);
		cr_assert_eq(device(4, 0), -1, "run %d", i);
	}
}

Test(learn, below_one_hit_in_two_it_stops_and_tries_again_later)
{
	struct observation run = run_on(0);
	uint32_t pauses[] = {4, 8, 16, 32, 64, 64};

	learn(&profile, &run);
	for (size_t i = 0; i < COUNT(pauses); i++) {
		run.outcome = LEARN_UNUSED;
		cr_assert_eq(decision().what, DECIDE_CONTEXT, "try %zu", i);
		learn(&profile, &run);
		run.outcome = LEARN_NOT_TRIED;
		for (uint32_t at = 0; at < pauses[i]; at++) {
			cr_assert_eq(decision().what, DECIDE_NOTHING, "try %zu, run %u", i, at);
			learn(&profile, &run);
		}
	}
	run.outcome = LEARN_HIT;
	for (int i = 0; i < 8; i++) {
		cr_assert_eq(decision().what, DECIDE_CONTEXT);
		learn(&profile, &run);
	}
	cr_assert_eq(section()->pauses, 0, "eight hits in a row make up for it");
	cr_assert_eq(section()->hits, 8);
	cr_assert_eq(section()->unused, 6);
	cr_assert_eq(section()->squashes, 0);
}

Test(learn, which_rows_of_outcomes_stop_it)
{
	static const struct {
		const char *outcomes; /* h hit, s squash, u unused, f the driver failed */
		bool is_stopped;
	} rows[] = {
		{"h", false},
		{"s", true},
		{"hs", false},
		{"hsh", false},
		{"hss", true},
		{"hsu", true},
		{"hhss", false},
		{"hhssu", true},
		{"hhhhhhhh", false},
		{"hhhhhhhhssss", false},
		{"hhhhhhhhsssss", true},
		{"hfff", false},
		{"fff", false},
		{"hshshshs", false},
		{"hshshshss", true},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct observation run = run_on(0);

		make();
		learn(&profile, &run);
		for (const char *at = rows[i].outcomes; *at; at++) {
			run.outcome = *at == 'h'   ? LEARN_HIT
				      : *at == 's' ? LEARN_SQUASHED
				      : *at == 'u' ? LEARN_UNUSED
						   : LEARN_FAILED;
			cr_assert_eq(section()->pause, 0, "%s too early", rows[i].outcomes);
			learn(&profile, &run);
		}
		cr_expect_eq(section()->pause > 0, rows[i].is_stopped, "%s", rows[i].outcomes);
	}
}

Test(learn, once_seen_forking_or_changing_its_environment_it_is_left_alone)
{
	struct observation run = run_on(0), clean = run_on(0);
	bool *flags[] = {&run.env_after_lookup, &run.forked_after_lookup};

	for (size_t i = 0; i < COUNT(flags); i++) {
		make();
		learn(&profile, &clean);
		*flags[i] = true;
		learn(&profile, &run);
		*flags[i] = false;
		for (int at = 0; at < 31; at++) {
			cr_assert_eq(decision().what, DECIDE_NOTHING, "%zu, run %d", i, at);
			learn(&profile, &clean);
		}
		learn(&profile, &clean);
		cr_assert_eq(decision().what, DECIDE_CONTEXT, "flag %zu", i);
	}
}

Test(learn, what_happens_before_the_lookup_forbids_the_start_alone)
{
	struct observation run = run_on(0);

	run.lookup_lead_us = 1 * MS;
	learn(&profile, &run);
	cr_assert_eq(decision().moment, DECIDE_AT_START);
	run.env_after_start = true;
	learn(&profile, &run);
	cr_assert_eq(decision().what, DECIDE_NOTHING);
	run.env_after_start = false;
	run.lookup_lead_us = 2700 * MS;
	for (int i = 0; i < 8; i++)
		learn(&profile, &run);
	cr_assert_eq(decision().what, DECIDE_CONTEXT);
	cr_assert_eq(decision().moment, DECIDE_AT_LOOKUP);
}

Test(learn, one_slow_start_moves_durations_little)
{
	struct observation run = run_on(0);

	learn(&profile, &run);
	cr_assert_eq(section()->context_us, 120 * MS);
	run.context_us = 920 * MS;
	learn(&profile, &run);
	cr_assert_eq(section()->context_us, 320 * MS);
	run.context_us = 0;
	learn(&profile, &run);
	cr_assert_eq(section()->context_us, 320 * MS, "not known is not zero");
	run.context_us = UINT64_MAX;
	for (int i = 0; i < 100; i++)
		learn(&profile, &run);
	cr_assert_gt(section()->context_us, UINT32_MAX / 2);
}

Test(learn, sections_are_learned_apart)
{
	struct observation run = run_on(0);

	learn(&profile, &run);
	run.model = "another GPU";
	run.is_used = false;
	run.context_count = 0;
	learn(&profile, &run);
	cr_assert_eq(profile.section_count, 2);
	cr_assert_eq(decision().what, DECIDE_CONTEXT);
	run.build_id[0] = 2;
	learn(&profile, &run);
	cr_assert_eq(profile.section_count, 3);
}

Test(learn, counters_stay_at_their_end)
{
	struct observation run = run_on(0);

	learn(&profile, &run);
	profile.sections[0].runs = profile.sections[0].hits = UINT32_MAX;
	run.outcome = LEARN_HIT;
	learn(&profile, &run);
	cr_assert_eq(section()->runs, UINT32_MAX);
	cr_assert_eq(section()->hits, UINT32_MAX);
}

Test(learn, a_whole_run_on_disk_keeps_what_it_does_not_know)
{
	static uint8_t room[256];
	char folder[] = "/tmp/hearth-learn-XXXXXX", command[64];
	struct profile_extension extension = {.data = room, .room = sizeof(room)};
	struct identity identity = {.kind = IDENTITY_SCRIPT, .name = "train.py"};
	struct observation run = run_on(0);

	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(learn_run(folder, NULL, &identity, &run), 0);
	cr_assert_eq(profile_read(folder, identity.digest, &profile, &extension), 0);
	cr_assert_eq(extension_add(&extension, 4242, "later", 5), 0);
	cr_assert_eq(profile_write(folder, &profile, &extension), 0);
	cr_assert_eq(learn_run(folder, NULL, &identity, &run), 0);
	cr_assert_eq(profile_read(folder, identity.digest, &profile, &extension), 0);
	cr_assert_eq(section()->runs, 2);
	cr_assert_eq(extension.size, 16);
	cr_assert_arr_eq(room + 8, "later", 5);
	/* A damaged one is replaced. */
	snprintf(command, sizeof(command), "for f in %s/*; do echo x >$f; done", folder);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(learn_run(folder, NULL, &identity, &run), 0);
	cr_assert_eq(profile_read(folder, identity.digest, &profile, &extension), 0);
	cr_assert_eq(section()->runs, 1);
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	cr_assert_eq(system(command), 0);
}

Test(learn, an_images_profile_is_where_the_users_begins)
{
	char system_folder[] = "/tmp/hearth-learn-XXXXXX", folder[] = "/tmp/hearth-learn-XXXXXX";
	struct identity identity = {.kind = IDENTITY_SCRIPT, .name = "train.py"};
	struct observation run = run_on(0);
	char command[128];

	cr_assert_not_null(mkdtemp(system_folder));
	cr_assert_not_null(mkdtemp(folder));
	for (int i = 0; i < 3; i++)
		cr_assert_eq(learn_run(system_folder, NULL, &identity, &run), 0);
	cr_assert_eq(learn_run(folder, system_folder, &identity, &run), 0);
	cr_assert_eq(profile_read(folder, identity.digest, &profile, NULL), 0);
	cr_assert_eq(section()->runs, 4);
	cr_assert_eq(learn_run(folder, system_folder, &identity, &run), 0);
	cr_assert_eq(profile_find(folder, system_folder, identity.digest, &profile, NULL), 0);
	cr_assert_eq(section()->runs, 5);
	cr_assert_eq(profile_read(system_folder, identity.digest, &profile, NULL), 0);
	cr_assert_eq(section()->runs, 3);
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", folder, system_folder);
	cr_assert_eq(system(command), 0);
}
