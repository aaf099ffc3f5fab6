/* BLAKE2b-256: values computed with Python's hashlib.blake2b(data, digest_size=32). */
#include "profile/digest.h"

#include <criterion/criterion.h>
#include <string.h>

static void fill(uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		data[i] = (uint8_t)(i * 7 + 3);
}

static const struct {
	size_t size;
	const char *hex;
} vectors[] = {
	{0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
	{1, "e88bd757ad5b9bedf372d8d3f0cf6c962a469db61a265f6418e1ffed86da29ec"},
	{3, "9facd640130c81e7f318a8d5c660bc1b0f5d03861ffbd4cc1358e0e904593c28"},
	{127, "c9ae3859964b35f04c54b36d33cf299d7290ee621005d28e51598a943560aaaa"},
	{128, "f0501d06597880592bc49234eef100ec1ff349058d0e9d9b753504e24af86dd6"},
	{129, "a34a4e1e03c541dfbf3099c4b6c143c022ced65c28bd7e8a10e0a098461aecf0"},
	{255, "f2d64a40e9412a3414161ff6250075225418fd7c271c1123e162e1bca0de9f93"},
	{256, "d93ebb9c802f5630ab22516fd82b6c21bc8bd551d531349b715f046ed11ed871"},
	{257, "4ce481b24d387422d2bc2baa03d1afd55a1327939ff537c71eb9b38709268649"},
	{1000, "d62b6c768ce1afc8367e0498ab2f8e3f7c178c35b1429f14c4604b545d200f52"},
};

Test(digest, known_values)
{
	uint8_t data[1000], digest[DIGEST_SIZE];
	char text[2 * DIGEST_SIZE + 1];

	fill(data, sizeof(data));
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		digest_of(data, vectors[i].size, digest);
		digest_format(digest, DIGEST_SIZE, text);
		cr_assert_str_eq(text, vectors[i].hex, "%zu bytes", vectors[i].size);
	}
}

Test(digest, pieces_of_any_size_give_the_same)
{
	uint8_t data[1000], whole[DIGEST_SIZE], pieces[DIGEST_SIZE];

	fill(data, sizeof(data));
	digest_of(data, sizeof(data), whole);
	for (size_t step = 1; step <= 300; step++) {
		struct digest_state state;

		digest_init(&state);
		for (size_t at = 0; at < sizeof(data); at += step)
			digest_update(&state, data + at,
				at + step > sizeof(data) ? sizeof(data) - at : step);
		digest_final(&state, pieces);
		cr_assert_arr_eq(whole, pieces, DIGEST_SIZE, "pieces of %zu", step);
	}
}

Test(digest, texts_do_not_run_into_each_other)
{
	uint8_t first[DIGEST_SIZE], second[DIGEST_SIZE];
	struct digest_state state;

	digest_init(&state);
	digest_text(&state, "ab");
	digest_text(&state, "c");
	digest_final(&state, first);
	digest_init(&state);
	digest_text(&state, "a");
	digest_text(&state, "bc");
	digest_final(&state, second);
	cr_assert_arr_neq(first, second, DIGEST_SIZE);
}
