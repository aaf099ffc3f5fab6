/* Reading UTF-8. Runs in the user's process, in hearthd and in the tools; pure. Must never read
 * past a text's end, however it ends. */
#include "base/utf8.h"

static size_t length_of(unsigned char first)
{
	return first < 0x80             ? 1
	       : (first & 0xe0) == 0xc0 ? 2
	       : (first & 0xf0) == 0xe0 ? 3
	       : (first & 0xf8) == 0xf0 ? 4
					: 0;
}

size_t utf8_next(const char *text, size_t size, uint32_t *ret_rune)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = (unsigned char)text[0];
	size_t length = length_of(first);
	uint32_t rune = length <= 1 ? first : first & (0x7fu >> length);

	if (!length || length > size)
		return 0;
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		rune = rune << 6 | ((unsigned char)text[i] & 0x3f);
	}
	if (rune < smallest[length] || rune > 0x10ffff || (rune >= 0xd800 && rune <= 0xdfff))
		return 0;
	*ret_rune = rune;
	return length;
}

bool utf8_is_harmless(uint32_t rune)
{
	bool is_control = rune < 0x20 || (rune >= 0x7f && rune <= 0x9f);
	bool is_separator = rune == 0x2028 || rune == 0x2029;
	bool turns = rune == 0x61c || rune == 0x200e || rune == 0x200f ||
		     (rune >= 0x202a && rune <= 0x202e) || (rune >= 0x2066 && rune <= 0x2069);

	return !is_control && !is_separator && !turns;
}
