/* Time as people read it, and time that never goes back. */
#include "base/clock.h"

#include <criterion/criterion.h>

/* `date -u -d 2026-11-30T18:00:00Z +%s` */
#define EVENING_US 1796061600000000ull

Test(clock, formats_utc_with_microseconds)
{
	char text[CLOCK_TEXT_SIZE];

	clock_format(EVENING_US + 123456, text);
	cr_assert_str_eq(text, "2026-11-30T18:00:00.123456Z");
	clock_format(0, text);
	cr_assert_str_eq(text, "1970-01-01T00:00:00.000000Z");
	clock_format(EVENING_US + 7, text);
	cr_assert_str_eq(text, "2026-11-30T18:00:00.000007Z");
}

Test(clock, monotonic_never_goes_back)
{
	uint64_t before = clock_monotonic_us();

	for (int i = 0; i < 100000; i++) {
		uint64_t now = clock_monotonic_us();

		cr_assert_geq(now, before);
		before = now;
	}
}
