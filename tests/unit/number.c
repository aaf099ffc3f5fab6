/* Numbers in text. */
#include "base/number.h"

#include <criterion/criterion.h>

Test(number, ends_behind_its_last_digit)
{
	const char *decimal = "120a", *hex = "7f00-80", *none = "x";

	cr_expect_eq(number_decimal(&decimal), 120);
	cr_expect_str_eq(decimal, "a");
	cr_expect_eq(number_hex(&hex), 0x7f00);
	cr_expect_str_eq(hex, "-80");
	cr_expect_eq(number_hex(&none), 0);
	cr_expect_str_eq(none, "x");
}

Test(number, what_is_no_digit_ends_it)
{
	static const char *const texts[] = {"", " 1", "-1", "+1", "A", ":", "/", "g", "`"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const char *at = texts[i];

		cr_expect_eq(number_hex(&at), 0, "%s", texts[i]);
		cr_expect_eq(at, texts[i]);
	}
}

Test(number, largest_and_larger)
{
	const char *largest = "18446744073709551615", *larger = "18446744073709551616",
		   *hex = "ffffffffffffffff", *hexes = "10000000000000000";

	cr_expect_eq(number_decimal(&largest), UINT64_MAX);
	cr_expect_eq(number_decimal(&larger), UINT64_MAX);
	cr_expect_eq(number_hex(&hex), UINT64_MAX);
	cr_expect_eq(number_hex(&hexes), UINT64_MAX);
	cr_expect_str_eq(larger, "");
	cr_expect_str_eq(hexes, "");
}
