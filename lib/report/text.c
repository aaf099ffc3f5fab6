/* Text from outside (program and file names, task names), made harmless and measured. Runs in the
 * tools. Must never pass a control character to a terminal. */
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
/* Combining marks and invisible characters; bidirectional controls are treated as control. */
static const struct range narrow[] = {
	{0x300, 0x36f}, {0x483, 0x489}, {0x591, 0x5bd}, {0x200b, 0x200d}, {0xfe00, 0xfe0f}};
static const struct range control[] = {
	{0, 0x1f}, {0x7f, 0x9f}, {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069}};

#define IS_IN(table, rune) is_in(table, sizeof(table) / sizeof((table)[0]), rune)

static bool is_in(const struct range *ranges, size_t count, uint32_t rune)
{
	for (size_t i = 0; i < count; i++)
		if (rune >= ranges[i].first && rune <= ranges[i].last)
			return true;
	return false;
}

/* The next character and its length in bytes; 0 bytes for broken UTF-8. */
static size_t rune_next(const char *text, uint32_t *ret_rune)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = (unsigned char)text[0];
	size_t length = first < 0x80             ? 1
			: (first & 0xe0) == 0xc0 ? 2
			: (first & 0xf0) == 0xe0 ? 3
			: (first & 0xf8) == 0xf0 ? 4
						 : 0;
	uint32_t rune = length <= 1 ? first : first & (0x7fu >> length);

	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		rune = rune << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (length > 1 && (rune < smallest[length] || rune > 0x10ffff))
		return 0;
	*ret_rune = rune;
	return length;
}

char *table_text_clean(const char *text)
{
	char *result = malloc(strlen(text) + 1), *end = result;

	while (result && *text) {
		uint32_t rune;
		size_t length = rune_next(text, &rune);

		if (!length || IS_IN(control, rune)) {
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
		size_t length = rune_next(text, &rune);

		width += IS_IN(wide, rune) ? 2 : IS_IN(narrow, rune) ? 0 : 1;
		text += length ? length : 1;
	}
	return width;
}
