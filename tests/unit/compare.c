/* Comparisons: which process counts, columns per device, medians, notes. */
#include "report/compare.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

/* A process that called cuInit and made a context on each of the devices. */
static void add_process(
	struct run_log *log, uint64_t init_us, int devices, uint64_t context_us, uint64_t waited_us)
{
	struct run *run = run_log_add(log);

	run->visible_us = waited_us;
	for (int i = -1; i < devices; i++) {
		struct run_record *record = run_add_record(run);

		record->call = strdup(i < 0 ? "cuInit" : "cuDevicePrimaryCtxRetain");
		record->visible_us = i < 0 ? init_us : context_us;
		record->device = i;
	}
}

static void add_round(struct comparison *comparison, enum compare_arm arm, uint64_t init_us,
	int devices, uint64_t whole_us)
{
	struct run_log log = {0};

	add_process(&log, init_us, devices, 100000, init_us + 250000);
	cr_assert(eq(int, compare_add(comparison, arm, &log, whole_us), 0));
	run_log_done(&log);
}

static char *print(const struct comparison *comparison)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	compare_print(comparison, to);
	fclose(to);
	return text;
}

static struct comparison *new_comparison(void)
{
	struct comparison *comparison = calloc(1, sizeof(*comparison));

	comparison->program = "train.py";
	return comparison;
}

Test(compare, shows_medians_and_what_is_saved)
{
	struct comparison *comparison = new_comparison();
	char *text;

	add_round(comparison, COMPARE_NATIVE, 100000, 1, 800000);
	add_round(comparison, COMPARE_NATIVE, 110000, 1, 900000);
	add_round(comparison, COMPARE_NATIVE, 230000, 1, 850000);
	add_round(comparison, COMPARE_HEARTH, 9100, 1, 700000);
	add_round(comparison, COMPARE_HEARTH, 8900, 1, 900000);
	add_round(comparison, COMPARE_HEARTH, 9900, 1, 860000);
	compare_judge(comparison);
	text = print(comparison);
	cr_expect(eq(str, text,
		"train.py, 3 rounds, milliseconds: median (least..most)\n"
		"\n"
		"                cuInit         context  other first calls   waited in all"
		"   whole program\n"
		"native  110 (100..230)  100 (100..100)     150 (150..150)  360 (350..480)"
		"  850 (800..900)\n"
		"hearth  9.1 (8.9..9.9)  100 (100..100)     150 (150..150)  259 (259..260)"
		"  860 (700..900)\n"
		"saved              101            0.00               0.00             101"
		"             -10\n"));
	free(text);
	free(comparison);
}

Test(compare, keeps_devices_apart)
{
	struct comparison *comparison = new_comparison();
	json_t *json, *column;
	size_t i, contexts = 0;
	char *text;

	add_round(comparison, COMPARE_NATIVE, 100000, 2, 800000);
	add_round(comparison, COMPARE_HEARTH, 9000, 2, 700000);
	text = print(comparison);
	cr_expect(strstr(text, "context, GPU 0  context, GPU 1") != NULL);
	free(text);
	json = compare_json(comparison);
	json_array_foreach(json_object_get(json, "columns"), i, column)
	{
		json_t *native = json_object_get(column, "native");

		if (strcmp(json_string_value(json_object_get(column, "name")), "context"))
			continue;
		contexts++;
		cr_expect(
			eq(i64, json_integer_value(json_object_get(native, "median_us")), 100000));
	}
	cr_expect(eq(sz, contexts, 2));
	json_decref(json);
	free(comparison);
}

Test(compare, takes_the_process_that_waited_longest_and_says_so)
{
	struct comparison *comparison = new_comparison();
	struct run_log log = {0};

	add_process(&log, 5000, 1, 100, 6000);
	add_process(&log, 90000, 1, 100, 95000);
	add_process(&log, 7000, 1, 100, 8000);
	cr_assert(eq(int, compare_add(comparison, COMPARE_NATIVE, &log, 200000), 0));
	cr_assert(eq(int, compare_add(comparison, COMPARE_HEARTH, &log, 200000), 0));
	cr_expect(eq(u64, comparison->samples[COMPARE_NATIVE][0].us[COMPARE_WAITED], 95000));
	cr_expect(eq(u64, comparison->samples[COMPARE_NATIVE][0].us[COMPARE_REST], 4900));
	cr_expect(eq(uint, comparison->note_count, 1));
	cr_expect(strstr(comparison->notes[0], "3 processes") != NULL);
	run_log_done(&log);
	free(comparison);
}

Test(compare, refuses_a_run_without_cuda)
{
	struct comparison *comparison = new_comparison();
	struct run_log log = {0};

	cr_expect(eq(int, compare_add(comparison, COMPARE_NATIVE, &log, 1), COMPARE_NO_CUDA));
	run_log_add(&log);
	cr_expect(eq(int, compare_add(comparison, COMPARE_NATIVE, &log, 1), COMPARE_NO_CUDA));
	cr_expect(eq(uint, comparison->rounds[COMPARE_NATIVE], 0));
	run_log_done(&log);
	free(comparison);
}

Test(compare, doubts_a_native_arm_that_is_warm)
{
	struct comparison *comparison = new_comparison();

	add_round(comparison, COMPARE_NATIVE, 9500, 1, 800000);
	add_round(comparison, COMPARE_HEARTH, 9000, 1, 700000);
	compare_judge(comparison);
	cr_expect(eq(uint, comparison->note_count, 1));
	free(comparison);
}

Test(compare, is_headed_simulated_where_it_is)
{
	struct comparison *comparison = new_comparison();
	char *text;
	json_t *json;

	comparison->is_simulated = true;
	add_round(comparison, COMPARE_NATIVE, 100000, 1, 800000);
	add_round(comparison, COMPARE_HEARTH, 9000, 1, 700000);
	text = print(comparison);
	cr_expect(eq(int, strncmp(text, "SIMULATED", 9), 0));
	json = compare_json(comparison);
	cr_expect(eq(str, (char *)json_string_value(json_object_get(json, "driver")), "simulated"));
	json_decref(json);
	free(text);
	free(comparison);
}
