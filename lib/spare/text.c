/* Texts that grow. Runs in `hearth run --spare` and in the process that holds a spare. */
#include "spare/text.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4096

void text_add(struct text *text, const void *bytes, size_t size)
{
	if (text->rc)
		return;
	if (text->size + size > text->room) {
		size_t room = text->room ? text->room : FIRST_ROOM;
		char *grown;

		while (room < text->size + size)
			room *= 2;
		grown = realloc(text->bytes, room);
		if (!grown) {
			text->rc = -ENOMEM;
			return;
		}
		text->bytes = grown;
		text->room = room;
	}
	if (size)
		memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
}

void text_add_word(struct text *text, const char *word)
{
	text_add(text, word, strlen(word) + 1);
}

void text_add_format(struct text *text, const char *format, ...)
{
	char word[PATH_MAX + 200];
	va_list words;
	int length;

	va_start(words, format);
	length = vsnprintf(word, sizeof(word), format, words);
	va_end(words);
	if (length < 0 || (size_t)length >= sizeof(word)) {
		text->rc = -ENAMETOOLONG;
		return;
	}
	text_add_word(text, word);
}

void text_done(struct text *text)
{
	free(text->bytes);
	*text = (struct text){0};
}
