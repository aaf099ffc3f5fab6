/* Writing JSON into a caller's buffer, bounded: no allocation, no lock, no locale. What does not
 * fit is dropped and json_out_end says so. Text is escaped; bytes that are not UTF-8 become U+FFFD,
 * so that the output is always valid JSON, whatever a program is called. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_out {
	char *start, *at, *end; /* end: one past the buffer; a NUL always fits */
	bool needs_comma;
	bool is_full;
};

/* Starts writing into `buffer`, which must hold at least one byte. */
void json_out_begin(struct json_out *ret_out, char *buffer, size_t size);

/* 0 and the text's length (NUL-terminated, not counted); -ENOBUFS where it did not fit. */
int json_out_end(struct json_out *out, size_t *ret_length);

/* `key` is NULL inside an array and for the outermost value. Keys are escaped like text. */
void json_out_object_begin(struct json_out *out, const char *key);
void json_out_object_end(struct json_out *out);
void json_out_array_begin(struct json_out *out, const char *key);
void json_out_array_end(struct json_out *out);
void json_out_string(struct json_out *out, const char *key, const char *text);
void json_out_bytes(struct json_out *out, const char *key, const char *text, size_t length);
void json_out_u64(struct json_out *out, const char *key, uint64_t value);
void json_out_i64(struct json_out *out, const char *key, int64_t value);
void json_out_bool(struct json_out *out, const char *key, bool value);
void json_out_null(struct json_out *out, const char *key);

/* A line end, for JSON lines. */
void json_out_newline(struct json_out *out);
