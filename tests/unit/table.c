/* Tables: alignment, wide and dangerous text, figures. */
#include "report/table.h"

#include "report/figure.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static const struct table_column columns[] = {
	{"name", TABLE_LEFT, 8}, {"ms", TABLE_RIGHT, 0}, {"how", TABLE_LEFT, 0}};

/* Prints a table of the cells, three a row. */
static char *print(const char *const *cells, size_t count)
{
	struct table *table = table_new(3, columns);
	char *text = NULL;
	size_t size;
	FILE *to = open_memstream(&text, &size);

	for (size_t i = 0; i < count; i++)
		table_cell(table, "%s", cells[i]);
	table_end_row(table);
	table_print(table, to);
	table_free(table);
	fclose(to);
	return text;
}

Test(table, aligns_columns_and_leaves_no_space_at_the_end)
{
	const char *cells[] = {"a", "1.00", "cold", "bcd", "115.25", "", "e"};
	char *text = print(cells, 7);

	cr_expect(eq(str, text,
		"name      ms  how\n"
		"a       1.00  cold\n"
		"bcd   115.25\n"
		"e\n"));
	free(text);
}

Test(table, counts_character_cells)
{
	const char *cells[] = {"\u6a21\u578b", "1", "x", "na\u0308h", "2", "y"};
	char *text = print(cells, 6);

	cr_expect(eq(str, text,
		"name  ms  how\n"
		"\u6a21\u578b   1  x\n"
		"na\u0308h    2  y\n"));
	free(text);
}

Test(table, cuts_long_names_at_a_character)
{
	const char *cells[] = {"abcdefghijk", "1", "", "\u6a21\u578b\u6a21\u578b\u6a21", "2", ""};
	char *text = print(cells, 6);

	cr_expect(eq(str, text,
		"name      ms  how\n"
		"abcde...   1\n"
		"\u6a21\u578b...    2\n"));
	free(text);
}

Test(table, makes_text_from_outside_harmless)
{
	char *clean = table_text_clean("a\033[31m\n\xff\u202e\xc0\xaf");

	cr_expect(eq(str, clean, "a?[31m?????"));
	free(clean);
}

Test(figure, has_no_more_digits_than_mean_something)
{
	char text[FIGURE_SIZE];

	cr_expect(eq(str, (char *)figure_time(4, text), "4 us"));
	cr_expect(eq(str, (char *)figure_time(310, text), "0.31 ms"));
	cr_expect(eq(str, (char *)figure_time(9123, text), "9.1 ms"));
	cr_expect(eq(str, (char *)figure_time(9990, text), "10 ms"));
	cr_expect(eq(str, (char *)figure_time(115400, text), "115 ms"));
	cr_expect(eq(str, (char *)figure_time(12345678, text), "12.3 s"));
	cr_expect(eq(str, (char *)figure_ms(2741133, text), "2741.13"));
	cr_expect(eq(str, (char *)figure_size(528u << 20, text), "528 MiB"));
	cr_expect(eq(str, (char *)figure_size(1536u << 20, text), "1.5 GiB"));
}

Test(figure, median_is_the_middle)
{
	uint64_t odd[] = {9, 1, 5}, even[] = {8, 2, 4, 100}, large[] = {UINT64_MAX, UINT64_MAX};

	cr_expect(eq(u64, figure_median(odd, 3), 5));
	cr_expect(eq(u64, figure_median(even, 4), 6));
	cr_expect(eq(u64, figure_median(large, 2), UINT64_MAX));
}
