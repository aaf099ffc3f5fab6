/* Reading and printing clocks. Runs anywhere, also in the user's process: takes no lock, allocates
 * nothing (gmtime_r would read TZ and lock, so the calendar is computed here). */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static uint64_t read_us(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_monotonic_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

uint64_t clock_realtime_us(void)
{
	return read_us(CLOCK_REALTIME);
}

void clock_format(uint64_t realtime_us, char ret_text[CLOCK_TEXT_SIZE])
{
	uint64_t seconds = realtime_us / 1000000;
	unsigned int of_day = (unsigned int)(seconds % 86400);
	/* Days since 0000-03-01, so that the leap day ends the year (proleptic Gregorian). */
	uint64_t days = seconds / 86400 + 719468;
	uint64_t era = days / 146097;
	unsigned int day = (unsigned int)(days % 146097);
	unsigned int year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
	unsigned int of_year = day - (365 * year + year / 4 - year / 100);
	unsigned int month = (5 * of_year + 2) / 153;

	snprintf(ret_text, CLOCK_TEXT_SIZE, "%04u-%02u-%02uT%02u:%02u:%02u.%06uZ",
		(unsigned int)(era * 400 + year + (month >= 10)) % 10000,
		(month < 10 ? month + 3 : month - 9) % 100,
		(of_year - (153 * month + 2) / 5 + 1) % 100, of_day / 3600, of_day / 60 % 60,
		of_day % 60, (unsigned int)(realtime_us % 1000000));
}
