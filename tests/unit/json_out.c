/* JSON output: always valid, never past the buffer. */
#include "base/json_out.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char buffer[4096];

static const char *text_of(const char *bytes, size_t length)
{
	struct json_out out;
	size_t written;

	json_out_begin(&out, buffer, sizeof(buffer));
	json_out_bytes(&out, NULL, bytes, length);
	cr_assert_eq(json_out_end(&out, &written), 0);
	cr_assert_eq(written, strlen(buffer));
	return buffer;
}

Test(json_out, an_object_of_every_kind)
{
	struct json_out out;
	size_t length;

	json_out_begin(&out, buffer, sizeof(buffer));
	json_out_object_begin(&out, NULL);
	json_out_string(&out, "a", "b");
	json_out_array_begin(&out, "list");
	json_out_u64(&out, NULL, UINT64_MAX);
	json_out_i64(&out, NULL, INT64_MIN);
	json_out_object_begin(&out, NULL);
	json_out_object_end(&out);
	json_out_array_end(&out);
	json_out_bool(&out, "yes", true);
	json_out_bool(&out, "no", false);
	json_out_null(&out, "none");
	json_out_object_end(&out);
	json_out_newline(&out);
	cr_assert_eq(json_out_end(&out, &length), 0);
	cr_assert_str_eq(buffer,
		"{\"a\":\"b\",\"list\":[18446744073709551615,-9223372036854775808,{}],"
		"\"yes\":true,\"no\":false,\"none\":null}\n");
}

Test(json_out, what_json_cannot_hold_is_escaped)
{
	cr_assert_str_eq(
		text_of("\"\\\n\t\1\x1f\x7f/", 8), "\"\\\"\\\\\\n\\t\\u0001\\u001f\\u007f/\"");
	cr_assert_str_eq(text_of("\0", 1), "\"\\u0000\"");
}

Test(json_out, utf8_stays)
{
	const char *text = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xa5\xed\x9f\xbf\xf4\x8f\xbf\xbf";
	char wanted[64];

	snprintf(wanted, sizeof(wanted), "\"%s\"", text);
	cr_assert_str_eq(text_of(text, strlen(text)), wanted);
}

Test(json_out, bytes_that_are_no_utf8_are_replaced_one_by_one)
{
	/* A stray continuation, an overlong '/', a surrogate, beyond U+10FFFF, a sequence cut
	 * short. */
	static const char *const wrong[] = {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80",
		"\xf4\x90\x80\x80", "\xf0\x9f\x94", "\xc3", "\xff", "\xe2\x82z"};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *text = text_of(wrong[i], strlen(wrong[i]));

		cr_assert(strstr(text, "\xef\xbf\xbd"), "%zu: %s", i, text);
		for (const char *at = text; *at; at++)
			if ((unsigned char)*at >= 0x80)
				cr_assert(strchr("\xef\xbf\xbd", *at), "%zu: %s", i, text);
	}
}

Test(json_out, every_size_too_small_is_an_error_and_nothing_is_written_past_it)
{
	static const char wanted[] = "{\"key\":\"v\\u0001\",\"n\":12}";

	for (size_t size = 1; size <= sizeof(wanted); size++) {
		char *small = malloc(size); /* so that ASan sees the end */
		struct json_out out;
		size_t length = 77;
		int rc;

		json_out_begin(&out, small, size);
		json_out_object_begin(&out, NULL);
		json_out_bytes(&out, "key", "v\1", 2);
		json_out_u64(&out, "n", 12);
		json_out_object_end(&out);
		rc = json_out_end(&out, &length);
		cr_assert_eq(rc, size < sizeof(wanted) ? -ENOBUFS : 0, "%zu", size);
		cr_assert_eq(length, rc ? 77 : sizeof(wanted) - 1);
		cr_assert(strlen(small) < size);
		free(small);
	}
}
