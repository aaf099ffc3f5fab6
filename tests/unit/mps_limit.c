/* Limits of MPS clients in people's words, and what MPS's codes mean. */
#include "driver/mps_code.h"
#include "mps/limit.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *memory_of(const char *text)
{
	static char value[LIMIT_VALUE];

	return limit_parse_memory(text, value) ? NULL : value;
}

Test(mps_limit, memory_becomes_an_integer_with_m_or_g)
{
	static const char *const pairs[][2] = {{"2GiB", "2G"}, {"2G", "2G"}, {"2gb", "2G"},
		{"1.5GiB", "1536M"}, {"512MB", "512M"}, {"1024M", "1G"}, {"1.5M", "1M"},
		{"none", LIMIT_NONE}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const char *value = memory_of(pairs[i][0]);

		cr_assert(value && !strcmp(value, pairs[i][1]), "%s", pairs[i][0]);
	}
}

Test(mps_limit, what_is_no_amount_of_memory_is_refused)
{
	static const char *const wrong[] = {
		"", "2", "G", "-1G", "0G", "2K", "2GiBs", "nan", "0.5M", "1e30G", "0=2G"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert(!memory_of(wrong[i]), "%s", wrong[i]);
}

Test(mps_limit, threads_are_percent)
{
	static const char *const wrong[] = {"", "0", "101", "-5", "x", "50%%", "5.5"};
	unsigned percent = 0;

	cr_assert(!limit_parse_threads("50%", &percent) && percent == 50);
	cr_assert(!limit_parse_threads("1", &percent) && percent == 1);
	cr_assert(!limit_parse_threads("100", &percent) && percent == 100);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_assert(limit_parse_threads(wrong[i], &percent), "%s", wrong[i]);
}

Test(mps_limit, codes_are_those_that_only_mps_gives)
{
	cr_assert(!mps_code_find(MPS_CODE_FIRST - 1) && !mps_code_find(MPS_CODE_LAST + 1));
	for (int code = MPS_CODE_FIRST; code <= MPS_CODE_LAST; code++)
		cr_assert(mps_code_find(code)->text[0] && mps_code_find(code)->remedy[0]);
	cr_assert(strstr(mps_code_find(806)->text, "has ended"));
	cr_assert(strstr(mps_code_find(810)->text, "terminate_client"));
}
