/* Text tables. Runs in the tools. Must never fail because of a cell's text. */
#include "report/table.h"

#include "base/array.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define GAP 2 /* spaces between columns */
#define CUT_MARK "..."

struct table {
	size_t columns;
	const struct table_column *column;
	size_t *widths;
	char **cells; /* row by row; a NULL counts as empty */
	size_t count, room;
};

struct table *table_new(size_t count, const struct table_column *columns)
{
	struct table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->columns = count;
	table->column = columns;
	table->widths = calloc(count, sizeof(*table->widths));
	return table->widths ? table : table_free(table);
}

struct table *table_free(struct table *table)
{
	if (!table)
		return NULL;
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table->widths);
	free(table);
	return NULL;
}

/* Shortens clean text, at a character's beginning, to the column's width. What goes is at least as
 * long as the mark. */
static void cut(char *text, size_t max_width)
{
	size_t end = strlen(text);

	if (!max_width || table_text_width(text) <= max_width)
		return;
	while (end && table_text_width(text) > max_width - strlen(CUT_MARK)) {
		do
			end--;
		while (end && ((unsigned char)text[end] & 0xc0) == 0x80);
		text[end] = '\0';
	}
	strcpy(text + end, CUT_MARK);
}

void table_cell(struct table *table, const char *format, ...)
{
	char *text = NULL, *clean;
	va_list words;

	if (!table)
		return;
	if (table->count == table->room) {
		size_t room = table->room ? table->room * 2 : 64;
		char **cells = array_resize(table->cells, room, sizeof(*cells));

		if (!cells)
			return;
		table->cells = cells;
		table->room = room;
	}
	va_start(words, format);
	if (vasprintf(&text, format, words) < 0)
		text = NULL;
	va_end(words);
	clean = text ? table_text_clean(text) : NULL;
	free(text);
	if (clean)
		cut(clean, table->column[table->count % table->columns].max_width);
	table->cells[table->count++] = clean;
}

void table_end_row(struct table *table)
{
	while (table && table->count % table->columns) {
		size_t before = table->count;

		table_cell(table, "%s", "");
		if (table->count == before)
			return;
	}
}

/* Prints one line; spaces are held back until something follows them. */
static void print_line(const struct table *table, char *const *cells, FILE *to)
{
	size_t spaces = 0;

	for (size_t c = 0; c < table->columns; c++) {
		const struct table_column *column = &table->column[c];
		const char *text = !cells ? column->title : cells[c] ? cells[c] : "";
		size_t fill = table->widths[c] - table_text_width(text);

		spaces += (c ? GAP : 0) + (column->align == TABLE_RIGHT ? fill : 0);
		if (*text) {
			fprintf(to, "%*s%s", (int)spaces, "", text);
			spaces = 0;
		}
		spaces += column->align == TABLE_RIGHT ? 0 : fill;
	}
	fputc('\n', to);
}

void table_print(struct table *table, FILE *to)
{
	if (!table)
		return;
	for (size_t c = 0; c < table->columns; c++)
		table->widths[c] = table_text_width(table->column[c].title);
	for (size_t i = 0; i < table->count; i++) {
		size_t width = table->cells[i] ? table_text_width(table->cells[i]) : 0;
		size_t *widest = &table->widths[i % table->columns];

		*widest = width > *widest ? width : *widest;
	}
	print_line(table, NULL, to);
	for (size_t i = 0; i + table->columns <= table->count; i += table->columns)
		print_line(table, table->cells + i, to);
}
