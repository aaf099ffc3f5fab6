/* Writing JSON. Runs in every process of Hearth, also in the user's program: never allocates, never
 * writes past the caller's buffer, calls nothing that reads the locale. */
#include "base/json_out.h"

#include "base/utf8.h"

#include <errno.h>
#include <string.h>

static void put(struct json_out *out, const char *bytes, size_t length)
{
	if (out->is_full || length >= (size_t)(out->end - out->at)) {
		out->is_full = true;
		return;
	}
	memcpy(out->at, bytes, length);
	out->at += length;
}

static void put_char(struct json_out *out, char byte)
{
	put(out, &byte, 1);
}

static void put_escaped(struct json_out *out, const char *text, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *at = (const unsigned char *)text, *end = at + length;

	put_char(out, '"');
	while (at < end) {
		uint32_t rune;
		size_t count = utf8_next((const char *)at, (size_t)(end - at), &rune);

		if (!count) {
			put(out, "\xef\xbf\xbd", 3);
			at++;
			continue;
		}
		if (*at == '"' || *at == '\\') {
			char pair[2] = {'\\', (char)*at};

			put(out, pair, sizeof(pair));
		} else if (*at == '\n') {
			put(out, "\\n", 2);
		} else if (*at == '\t') {
			put(out, "\\t", 2);
		} else if (*at < 0x20 || *at == 0x7f) {
			char escape[6] = {'\\', 'u', '0', '0', digits[*at >> 4], digits[*at & 15]};

			put(out, escape, sizeof(escape));
		} else {
			put(out, (const char *)at, count);
		}
		at += count;
	}
	put_char(out, '"');
}

static void put_key(struct json_out *out, const char *key)
{
	if (out->needs_comma)
		put_char(out, ',');
	out->needs_comma = true;
	if (!key)
		return;
	put_escaped(out, key, strlen(key));
	put_char(out, ':');
}

void json_out_begin(struct json_out *ret_out, char *buffer, size_t size)
{
	*ret_out = (struct json_out){.start = buffer, .at = buffer, .end = buffer + size};
	buffer[0] = 0;
}

int json_out_end(struct json_out *out, size_t *ret_length)
{
	*out->at = 0;
	if (out->is_full)
		return -ENOBUFS;
	*ret_length = (size_t)(out->at - out->start);
	return 0;
}

static void open_with(struct json_out *out, const char *key, char bracket)
{
	put_key(out, key);
	put_char(out, bracket);
	out->needs_comma = false;
}

static void close_with(struct json_out *out, char bracket)
{
	put_char(out, bracket);
	out->needs_comma = true;
}

void json_out_object_begin(struct json_out *out, const char *key)
{
	open_with(out, key, '{');
}

void json_out_object_end(struct json_out *out)
{
	close_with(out, '}');
}

void json_out_array_begin(struct json_out *out, const char *key)
{
	open_with(out, key, '[');
}

void json_out_array_end(struct json_out *out)
{
	close_with(out, ']');
}

void json_out_bytes(struct json_out *out, const char *key, const char *text, size_t length)
{
	put_key(out, key);
	put_escaped(out, text, length);
}

void json_out_string(struct json_out *out, const char *key, const char *text)
{
	json_out_bytes(out, key, text, strlen(text));
}

static void put_digits(struct json_out *out, uint64_t value)
{
	char text[20]; /* 2^64 has 20 digits */
	size_t at = sizeof(text);

	do {
		text[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	put(out, text + at, sizeof(text) - at);
}

void json_out_u64(struct json_out *out, const char *key, uint64_t value)
{
	put_key(out, key);
	put_digits(out, value);
}

void json_out_i64(struct json_out *out, const char *key, int64_t value)
{
	put_key(out, key);
	if (value < 0)
		put_char(out, '-');
	put_digits(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void json_out_bool(struct json_out *out, const char *key, bool value)
{
	put_key(out, key);
	put(out, value ? "true" : "false", value ? 4 : 5);
}

void json_out_null(struct json_out *out, const char *key)
{
	put_key(out, key);
	put(out, "null", 4);
}

void json_out_newline(struct json_out *out)
{
	put_char(out, '\n');
	out->needs_comma = false;
}
