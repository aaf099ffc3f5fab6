/* A run as a table. Runs in the tools. Must never add up figures of different devices. */
#include "report/show.h"

#include "report/figure.h"
#include "report/table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALL, DEVICE, AT, WAITED, HIDDEN, HOW, COLUMNS };

static const struct table_column columns[COLUMNS] = {
	[CALL] = {"call", TABLE_LEFT, 56},
	[DEVICE] = {"device", TABLE_RIGHT, 0},
	[AT] = {"at ms", TABLE_RIGHT, 0},
	[WAITED] = {"waited ms", TABLE_RIGHT, 0},
	[HIDDEN] = {"hidden ms", TABLE_RIGHT, 0},
	[HOW] = {"how", TABLE_LEFT, 40},
};

/* Library loads are many: those of one file on one device served in one way make one line. */
static bool is_same_group(const struct run_record *a, const struct run_record *b)
{
	return run_record_kind(a) == RUN_LIBRARY && run_record_kind(b) == RUN_LIBRARY &&
	       a->device == b->device && a->rc == b->rc && !strcmp(a->object, b->object) &&
	       !strcmp(a->how, b->how);
}

static bool begins_group(const struct run *run, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (is_same_group(&run->records[i], &run->records[at]))
			return false;
	return true;
}

static void add_group(struct table *table, const struct run *run, size_t at)
{
	const struct run_record *first = &run->records[at];
	uint64_t visible_us = 0, hidden_us = 0;
	char text[FIGURE_SIZE];
	size_t count = 0;

	for (size_t i = at; i < run->count; i++) {
		if (i != at && !is_same_group(first, &run->records[i]))
			continue;
		visible_us += run->records[i].visible_us;
		hidden_us += run->records[i].hidden_us;
		count++;
	}
	if (count > 1)
		table_cell(table, "%zu library loads%s%s", count, *first->object ? " " : "",
			first->object);
	else
		table_cell(table, "%s%s%s", first->call, *first->object ? " " : "", first->object);
	if (first->device < 0)
		table_cell(table, "-");
	else
		table_cell(table, "%d", first->device);
	table_cell(table, "%s", figure_ms(first->at_us, text));
	table_cell(table, "%s", figure_ms(visible_us, text));
	table_cell(table, "%s", figure_ms(hidden_us, text));
	if (first->rc)
		table_cell(table, "%s, failed with %d", first->how, first->rc);
	else
		table_cell(table, "%s", first->how);
}

/* What is in the totals but in no line, so that the column adds up. */
static void add_rest(struct table *table, const struct run *run)
{
	uint64_t waited = run_waited(run), hidden = run_hidden(run);
	char text[FIGURE_SIZE];

	for (size_t i = 0; i < run->count; i++) {
		waited -= run->records[i].visible_us;
		hidden -= run->records[i].hidden_us;
	}
	if (!waited && !hidden)
		return;
	table_cell(table, "calls without a line");
	table_cell(table, "-");
	table_cell(table, "-");
	table_cell(table, "%s", figure_ms(waited, text));
	table_cell(table, "%s", figure_ms(hidden, text));
	table_end_row(table);
}

static void add_totals(struct table *table, const struct run *run)
{
	char text[FIGURE_SIZE];

	table_cell(table, "in all");
	table_cell(table, "-");
	table_cell(table, "-");
	table_cell(table, "%s", figure_ms(run_waited(run), text));
	table_cell(table, "%s", figure_ms(run_hidden(run), text));
	table_end_row(table);
}

static void print_headline(const struct run *run, FILE *to)
{
	char *program = table_text_clean(run->program), *task = table_text_clean(run->task);
	char *end = table_text_clean(run->exit);
	char date[32], time[FIGURE_SIZE];
	time_t seconds = (time_t)(run->start_us / 1000000);
	struct tm tm;

	localtime_r(&seconds, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	fprintf(to, "%s, pid %ld", program ? program : "?", run->pid);
	if (task && *task)
		fprintf(to, ", task %s", task);
	fprintf(to, ", began %s", date);
	if (run->duration_us != RUN_UNKNOWN)
		fprintf(to, ", ran %s", figure_time(run->duration_us, time));
	if (end && strcmp(end, "unknown"))
		fprintf(to, ", %s", end);
	fputs("\n", to);
	free(program);
	free(task);
	free(end);
}

void show_run(const struct run *run, FILE *to)
{
	struct table *table;
	char *sentence = show_sentence(run), *clean = sentence ? table_text_clean(sentence) : NULL;
	char time[FIGURE_SIZE];

	print_headline(run, to);
	if (run->count) {
		table = table_new(COLUMNS, columns);
		for (size_t i = 0; i < run->count; i++)
			if (begins_group(run, i))
				add_group(table, run, i);
		add_rest(table, run);
		add_totals(table, run);
		table_print(table, to);
		table_free(table);
	}
	if (clean)
		fprintf(to, "%s.", clean);
	if (run->first_result_us != RUN_UNKNOWN && run->first_result_us)
		fprintf(to, " First result %s after the start.",
			figure_time(run->first_result_us, time));
	fputs("\n", to);
	free(sentence);
	free(clean);
}
