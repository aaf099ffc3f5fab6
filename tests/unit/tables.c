/* The spec's tables: names, versions, variants. */
#include "driver/tables.h"

#include <criterion/criterion.h>
#include <string.h>

Test(tables, every_symbol_is_found)
{
	for (unsigned int row = 0; row < DRIVER_ROWS; row++)
		cr_assert_eq(tables_find_symbol(tables_symbol(row)), row);
}

Test(tables, what_is_no_symbol_is_not_found)
{
	static const char *const names[] = {"", "c", "cu", "cuMemAlloc_v9", "zz", "cuInit "};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_assert_eq(tables_find_symbol(names[i]), DRIVER_ROWS, "%s", names[i]);
}

Test(tables, rows_of_a_public_name_are_newest_first)
{
	const uint16_t *rows;
	size_t count = tables_find_public("cuMemcpyHtoDAsync", &rows);

	cr_assert_eq(count, 3);
	cr_assert_eq(rows[0], ROW_cuMemcpyHtoDAsync_v2_ptsz);
	cr_assert_eq(rows[1], ROW_cuMemcpyHtoDAsync_v2);
	cr_assert_eq(rows[2], ROW_cuMemcpyHtoDAsync);
	cr_assert_eq(tables_find_public("cuMemcpyHtoDAsync_v2", &rows), 0);
}

Test(tables, request_follows_the_documented_rule)
{
	static const struct {
		const char *name;
		int version;
		uint64_t flags;
		enum driver_row row;
	} cases[] = {
		{"cuCtxCreate", 1999, 0, DRIVER_ROWS},
		{"cuCtxCreate", 2000, 0, ROW_cuCtxCreate},
		{"cuCtxCreate", 3019, 0, ROW_cuCtxCreate},
		{"cuCtxCreate", 3020, 0, ROW_cuCtxCreate_v2},
		{"cuCtxCreate", 12040, 0, ROW_cuCtxCreate_v3},
		{"cuCtxCreate", 13030, 0, ROW_cuCtxCreate_v4},
		{"cuLaunchKernel", 6000, 2, ROW_cuLaunchKernel},
		{"cuLaunchKernel", 7000, 2, ROW_cuLaunchKernel_ptsz},
		{"cuLaunchKernel", 7000, 1, ROW_cuLaunchKernel},
		{"cuGetProcAddress", 11030, 0, ROW_cuGetProcAddress},
		{"cuGetProcAddress", 12000, 0, ROW_cuGetProcAddress_v2},
		{"cuNope", 13000, 0, DRIVER_ROWS},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(tables_find_request(cases[i].name, cases[i].version, cases[i].flags),
			cases[i].row, "%s %d", cases[i].name, cases[i].version);
}
