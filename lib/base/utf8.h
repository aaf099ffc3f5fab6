/* UTF-8 from outside: names of files and programs, task names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UTF8_MAX 4 /* bytes of the longest character */

/* The first character of `text`, which has at least one byte and at most `size`: its length in
 * bytes, or 0 where it is none: no overlong forms, no surrogates, nothing above U+10FFFF (Unicode,
 * table 3-7). */
size_t utf8_next(const char *text, size_t size, uint32_t *ret_rune);

/* May a terminal see it as it is? Not control characters, line separators and those that turn the
 * direction of what follows. */
bool utf8_is_harmless(uint32_t rune);
