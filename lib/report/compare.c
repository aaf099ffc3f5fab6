/* Comparing runs. Runs in `hearth compare`. */
#include "report/compare.h"

#include "report/figure.h"
#include "report/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const arm_names[COMPARE_ARMS] = {"native", "hearth"};

struct figures {
	uint64_t median, least, most;
};

/* The process whose wait was the longest; NULL where none called cuInit. */
static const struct run *pick(const struct run_log *log, unsigned *ret_count)
{
	const struct run *longest = NULL;
	unsigned count = 0;

	for (size_t i = 0; i < log->count; i++) {
		if (!log->runs[i].count)
			continue;
		count++;
		if (!longest || run_waited(&log->runs[i]) > run_waited(longest))
			longest = &log->runs[i];
	}
	*ret_count = count;
	return longest;
}

static void add_to(uint64_t *figure, uint64_t us)
{
	*figure = (*figure == RUN_UNKNOWN ? 0 : *figure) + us;
}

static void fill(struct compare_sample *sample, const struct run *run)
{
	uint64_t named = 0;

	for (size_t i = 0; i < COMPARE_COLUMNS; i++)
		sample->us[i] = RUN_UNKNOWN;
	for (size_t i = 0; i < run->count; i++) {
		const struct run_record *record = &run->records[i];
		enum run_kind kind = run_record_kind(record);

		if (kind == RUN_INIT)
			add_to(&sample->us[COMPARE_INIT], record->visible_us);
		else if (kind == RUN_CONTEXT && record->device >= 0 &&
			 record->device < COMPARE_MAX_DEVICES)
			add_to(&sample->us[COMPARE_CONTEXT + record->device], record->visible_us);
		else
			continue;
		named += record->visible_us;
	}
	sample->us[COMPARE_WAITED] = run_waited(run);
	sample->us[COMPARE_REST] = run_waited(run) - named;
}

int compare_add(struct comparison *comparison, enum compare_arm arm, const struct run_log *log,
	uint64_t whole_us)
{
	struct compare_sample *sample;
	unsigned count;
	const struct run *run = pick(log, &count);

	if (!run)
		return COMPARE_NO_CUDA;
	if (comparison->rounds[arm] == COMPARE_MAX_ROUNDS)
		return 0;
	if (count > 1)
		compare_note(comparison,
			"%u processes used CUDA: the columns before the last show the one that "
			"waited longest",
			count);
	sample = &comparison->samples[arm][comparison->rounds[arm]++];
	fill(sample, run);
	sample->us[COMPARE_WHOLE] = whole_us;
	return 0;
}

void compare_note(struct comparison *comparison, const char *format, ...)
{
	char text[sizeof(comparison->notes[0])];
	va_list words;

	va_start(words, format);
	vsnprintf(text, sizeof(text), format, words);
	va_end(words);
	for (unsigned i = 0; i < comparison->note_count; i++)
		if (!strcmp(comparison->notes[i], text))
			return;
	if (comparison->note_count < COMPARE_MAX_NOTES)
		strcpy(comparison->notes[comparison->note_count++], text);
}

static bool get_figures(const struct comparison *comparison, enum compare_arm arm, int column,
	struct figures *ret_figures)
{
	uint64_t values[COMPARE_MAX_ROUNDS];
	unsigned count = 0;

	for (unsigned i = 0; i < comparison->rounds[arm]; i++)
		if (comparison->samples[arm][i].us[column] != RUN_UNKNOWN)
			values[count++] = comparison->samples[arm][i].us[column];
	if (!count)
		return false;
	ret_figures->median = figure_median(values, count); /* sorts them */
	ret_figures->least = values[0];
	ret_figures->most = values[count - 1];
	return true;
}

/* A native cuInit that is nearly as fast as Hearth's was not native. */
void compare_judge(struct comparison *comparison)
{
	struct figures native, hearth;

	if (get_figures(comparison, COMPARE_NATIVE, COMPARE_INIT, &native) &&
		get_figures(comparison, COMPARE_HEARTH, COMPARE_INIT, &hearth) &&
		native.median < hearth.median + hearth.median / 2)
		compare_note(comparison,
			"the native cuInit is about as fast as the one through Hearth: something "
			"keeps this GPU warm anyway, or there is nothing to save");
}

static bool has_column(const struct comparison *comparison, int column)
{
	struct figures figures;

	return get_figures(comparison, COMPARE_NATIVE, column, &figures) ||
	       get_figures(comparison, COMPARE_HEARTH, column, &figures);
}

static unsigned count_contexts(const struct comparison *comparison)
{
	unsigned count = 0;

	for (int device = 0; device < COMPARE_MAX_DEVICES; device++)
		count += has_column(comparison, COMPARE_CONTEXT + device);
	return count;
}

static const char *column_name(int column)
{
	return column == COMPARE_INIT     ? "cuInit"
	       : column < COMPARE_REST    ? "context"
	       : column == COMPARE_REST   ? "other first calls"
	       : column == COMPARE_WAITED ? "waited in all"
					  : "whole program";
}

/* Milliseconds with about three digits. */
static void print_ms(FILE *to, double us)
{
	double ms = us / 1000, size = ms < 0 ? -ms : ms;

	fprintf(to, "%.*f", size < 0.995 ? 2 : size < 9.95 ? 1 : 0, ms);
}

static void add_cell(struct table *table, const struct figures *figures, bool has_range)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return;
	print_ms(to, (double)figures->median);
	if (has_range) {
		fputs(" (", to);
		print_ms(to, (double)figures->least);
		fputs("..", to);
		print_ms(to, (double)figures->most);
		fputs(")", to);
	}
	fclose(to);
	table_cell(table, "%s", text);
	free(text);
}

static void add_saved_cell(
	struct table *table, const struct figures *native, const struct figures *hearth)
{
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	if (!to)
		return;
	print_ms(to, (double)native->median - (double)hearth->median);
	fclose(to);
	table_cell(table, "%s", text);
	free(text);
}

static void print_table(const struct comparison *comparison, FILE *to)
{
	struct table_column columns[COMPARE_COLUMNS + 1] = {{"", TABLE_LEFT, 0}};
	char titles[COMPARE_MAX_DEVICES][24];
	unsigned shown[COMPARE_COLUMNS], count = 0, contexts = count_contexts(comparison);
	struct figures native, hearth;
	struct table *table;

	for (unsigned c = 0; c < COMPARE_COLUMNS; c++) {
		const char *title = column_name((int)c);

		if (!has_column(comparison, (int)c))
			continue;
		if (contexts > 1 && c >= COMPARE_CONTEXT && c < COMPARE_REST) {
			snprintf(titles[c - COMPARE_CONTEXT], sizeof(titles[0]), "context, GPU %u",
				c - COMPARE_CONTEXT);
			title = titles[c - COMPARE_CONTEXT];
		}
		shown[count++] = c;
		columns[count] = (struct table_column){title, TABLE_RIGHT, 0};
	}
	table = table_new(count + 1, columns);
	for (unsigned arm = 0; arm < COMPARE_ARMS; arm++) {
		table_cell(table, "%s", arm_names[arm]);
		for (unsigned i = 0; i < count; i++) {
			if (get_figures(comparison, arm, (int)shown[i], &native))
				add_cell(table, &native, comparison->rounds[arm] > 1);
			else
				table_cell(table, "-");
		}
	}
	table_cell(table, "saved");
	for (unsigned i = 0; i < count; i++) {
		if (get_figures(comparison, COMPARE_NATIVE, (int)shown[i], &native) &&
			get_figures(comparison, COMPARE_HEARTH, (int)shown[i], &hearth))
			add_saved_cell(table, &native, &hearth);
		else
			table_cell(table, "-");
	}
	table_print(table, to);
	table_free(table);
}

void compare_print(const struct comparison *comparison, FILE *to)
{
	unsigned rounds = comparison->rounds[COMPARE_NATIVE];
	char *program = table_text_clean(comparison->program);

	if (comparison->is_simulated)
		fputs("SIMULATED: these are the simulated driver's times, not a GPU's.\n", to);
	fprintf(to, "%s, %u round%s, milliseconds%s\n\n", program ? program : "?", rounds,
		rounds == 1 ? "" : "s", rounds == 1 ? "" : ": median (least..most)");
	free(program);
	print_table(comparison, to);
	for (unsigned i = 0; i < comparison->note_count; i++) {
		char *note = table_text_clean(comparison->notes[i]);

		fprintf(to, "%sNote: %s.\n", i ? "" : "\n", note ? note : "?");
		free(note);
	}
}

static json_t *arm_json(const struct comparison *comparison, enum compare_arm arm, int column)
{
	json_t *samples = json_array();
	struct figures figures;

	for (unsigned i = 0; i < comparison->rounds[arm]; i++) {
		uint64_t us = comparison->samples[arm][i].us[column];

		json_array_append_new(
			samples, us == RUN_UNKNOWN ? json_null() : json_integer((json_int_t)us));
	}
	if (!get_figures(comparison, arm, column, &figures))
		return json_pack("{s:n, s:o}", "median_us", "samples_us", samples);
	return json_pack("{s:I, s:I, s:I, s:o}", "median_us", (json_int_t)figures.median,
		"least_us", (json_int_t)figures.least, "most_us", (json_int_t)figures.most,
		"samples_us", samples);
}

json_t *compare_json(const struct comparison *comparison)
{
	json_t *columns = json_array(), *notes = json_array();

	for (int c = 0; c < COMPARE_COLUMNS; c++) {
		bool is_context = c >= COMPARE_CONTEXT && c < COMPARE_REST;

		if (has_column(comparison, c))
			json_array_append_new(columns,
				json_pack("{s:s, s:o, s:o, s:o}", "name", column_name(c), "device",
					is_context ? json_integer(c - COMPARE_CONTEXT)
						   : json_null(),
					arm_names[COMPARE_NATIVE],
					arm_json(comparison, COMPARE_NATIVE, c),
					arm_names[COMPARE_HEARTH],
					arm_json(comparison, COMPARE_HEARTH, c)));
	}
	for (unsigned i = 0; i < comparison->note_count; i++)
		json_array_append_new(notes, json_string(comparison->notes[i]));
	return json_pack("{s:i, s:s, s:s, s:I, s:o, s:o}", "v", 1, "driver",
		comparison->is_simulated ? "simulated" : "real", "program", comparison->program,
		"rounds", (json_int_t)comparison->rounds[COMPARE_NATIVE], "columns", columns,
		"notes", notes);
}
