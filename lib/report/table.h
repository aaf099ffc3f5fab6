/* Text tables for a terminal: columns as wide as their widest cell, counted in character cells, so
 * that wide and combining characters do not shift a line. Text from outside is made harmless:
 * control characters and broken UTF-8 come out as '?'. */
#pragma once

#include <stddef.h>
#include <stdio.h>

enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table_column {
	const char *title;
	enum table_align align;
	size_t max_width; /* longer text is cut with "..."; 0 = never */
};

struct table;

/* `columns` must outlive the table. NULL without memory; the calls below take NULL, and a cell that
 * finds no memory stays empty. */
struct table *table_new(size_t count, const struct table_column *columns);
struct table *table_free(struct table *table);

/* The next cell, row by row. A row that is left short is filled by table_end_row. */
__attribute__((format(printf, 2, 3))) void table_cell(struct table *table, const char *format, ...);
void table_end_row(struct table *table);

/* Title line and rows, two spaces between columns, no space at a line's end. */
void table_print(struct table *table, FILE *to);

/* Character cells that `text` takes on a terminal, and a copy that is safe to print (freed by the
 * caller; NULL without memory). */
size_t table_text_width(const char *text);
char *table_text_clean(const char *text);
