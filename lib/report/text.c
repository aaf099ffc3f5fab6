/* Text from outside (program and file names, task names), made harmless and measured. Runs in the
 * tools. Must never pass a control character to a terminal. */
#include "base/utf8.h"
#include "report/table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct range {
	uint32_t first, last;
};

/* East Asian wide and fullwidth, and pictographs (Unicode TR 11, the large blocks). */
static const struct range wide[] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3},
	{0xf900, 0xfaff}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff},
	{0x20000, 0x3fffd}};
/* Combining marks and invisible characters. */
static const struct range narrow[] = {
	{0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x200b, 0x200d}, {0xfe00, 0xfe0f}};

#define IS_IN(table, rune) is_in(table, sizeof(table) / sizeof((table)[0]), rune)

static bool is_in(const struct range *ranges, size_t count, uint32_t rune)
{
	for (size_t i = 0; i < count; i++)
		if (rune >= ranges[i].first && rune <= ranges[i].last)
			return true;
	return false;
}

char *table_text_clean(const char *text)
{
	char *result = malloc(strlen(text) + 1), *end = result;

	while (result && *text) {
		uint32_t rune;
		size_t length = utf8_next(text, strnlen(text, UTF8_MAX), &rune);

		if (!length || !utf8_is_harmless(rune)) {
			*end++ = '?';
			text += length ? length : 1;
			continue;
		}
		end = mempcpy(end, text, length);
		text += length;
	}
	if (result)
		*end = '\0';
	return result;
}

size_t table_text_width(const char *text)
{
	size_t width = 0;

	while (*text) {
		uint32_t rune = 0;
		size_t length = utf8_next(text, strnlen(text, UTF8_MAX), &rune);

		width += IS_IN(wide, rune) ? 2 : IS_IN(narrow, rune) ? 0 : 1;
		text += length ? length : 1;
	}
	return width;
}
