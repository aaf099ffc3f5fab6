/* Figures as text, and medians. Runs in the tools. */
#include "report/figure.h"

#include <stdio.h>
#include <stdlib.h>

#define US_PER_MS 1000.0
#define US_PER_S 1000000.0

const char *figure_time(uint64_t us, char ret_text[FIGURE_SIZE])
{
	double ms = (double)us / US_PER_MS;

	if (us < 10)
		snprintf(ret_text, FIGURE_SIZE, "%u us", (unsigned)us);
	else if (ms < 1)
		snprintf(ret_text, FIGURE_SIZE, "%.2f ms", ms);
	else if (ms < 9.95)
		snprintf(ret_text, FIGURE_SIZE, "%.1f ms", ms);
	else if (ms < 10000)
		snprintf(ret_text, FIGURE_SIZE, "%.0f ms", ms);
	else
		snprintf(ret_text, FIGURE_SIZE, "%.1f s", (double)us / US_PER_S);
	return ret_text;
}

const char *figure_ms(uint64_t us, char ret_text[FIGURE_SIZE])
{
	snprintf(ret_text, FIGURE_SIZE, "%.2f", (double)us / US_PER_MS);
	return ret_text;
}

const char *figure_size(uint64_t bytes, char ret_text[FIGURE_SIZE])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 1024) {
		value /= 1024;
		unit++;
	}
	snprintf(ret_text, FIGURE_SIZE, "%.*f %s", unit && value < 10 ? 1 : 0, value, units[unit]);
	return ret_text;
}

static int compare_values(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

uint64_t figure_median(uint64_t *values, unsigned count)
{
	uint64_t low, high;

	qsort(values, count, sizeof(*values), compare_values);
	low = values[(count - 1) / 2];
	high = values[count / 2];
	return low + (high - low) / 2;
}
