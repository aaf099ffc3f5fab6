/* Texts that grow: what the two sides of a spare compare and send. Freed by text_done. */
#pragma once

#include <stddef.h>

struct text {
	char *bytes;
	size_t size, room;
	int rc; /* the first failure, -ENOMEM; later additions do nothing */
};

void text_add(struct text *text, const void *bytes, size_t size);

/* A word and its NUL. */
void text_add_word(struct text *text, const char *word);
__attribute__((format(printf, 2, 3))) void text_add_format(
	struct text *text, const char *format, ...);

void text_done(struct text *text);
