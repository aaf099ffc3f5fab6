/* Restarts of notebooks' kernels, summed up. Runs in `hearth report`. */
#include "report/restarts.h"

#include "report/figure.h"
#include "report/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NOTEBOOK ".ipynb"

static bool is_notebook(const struct run *run)
{
	size_t length = strlen(run->task), suffix = strlen(NOTEBOOK);

	return length > suffix && !strcmp(run->task + length - suffix, NOTEBOOK);
}

static bool is_same(const struct run *a, const struct run *b)
{
	return !strcmp(a->task, b->task) && !strcmp(a->program, b->program);
}

bool restarts_has_later(const struct run_log *log, size_t at)
{
	if (!is_notebook(&log->runs[at]))
		return false;
	for (size_t i = at + 1; i < log->count; i++)
		if (is_same(&log->runs[i], &log->runs[at]))
			return true;
	return false;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

void restarts_print(const struct run_log *log, size_t first, size_t at, FILE *to)
{
	char before[FIGURE_SIZE], after[FIGURE_SIZE];
	uint64_t *waited = calloc(log->count, sizeof(*waited)), first_waited = 0;
	size_t count = 0, killed = 0;
	char *name = table_text_clean(log->runs[at].task);

	for (size_t i = first; waited && i < log->count; i++) {
		if (!is_notebook(&log->runs[at]) || !is_same(&log->runs[i], &log->runs[at]))
			continue;
		if (!count)
			first_waited = run_waited(&log->runs[i]);
		else
			waited[count - 1] = run_waited(&log->runs[i]);
		killed += !strcmp(log->runs[i].exit, "killed");
		count++;
	}
	if (count > 1) {
		qsort(waited, count - 1, sizeof(*waited), by_size);
		fprintf(to, "%s: started %zu times", name ? name : "?", count);
		if (killed)
			fprintf(to, ", %zu killed", killed);
		fprintf(to, "; waited %s in the first, %s at the median of the others; the last:\n",
			figure_time(first_waited, before),
			figure_time(waited[(count - 1) / 2], after));
	}
	free(waited);
	free(name);
}
