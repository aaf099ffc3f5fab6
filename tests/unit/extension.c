/* The extension area: typed records that unknown readers skip and unknown writers keep. */
#include "profile/extension.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static uint8_t room[4096];
static struct profile_extension area;

static void make(void)
{
	memset(room, 0xee, sizeof(room));
	area = (struct profile_extension){.data = room, .room = sizeof(room)};
}

TestSuite(extension, .init = make);

Test(extension, records_come_back_in_order)
{
	static const char *const texts[] = {"", "a", "seven..", "eight...", "nine....."};
	struct extension_record record;
	uint32_t cursor = 0;

	for (uint32_t i = 0; i < 5; i++)
		cr_assert_eq(extension_add(&area, i + 1, texts[i], (uint32_t)strlen(texts[i])), 0);
	cr_assert(extension_is_walkable(area.data, area.size));
	for (uint32_t i = 0; i < 5; i++) {
		cr_assert(extension_next(&area, &cursor, &record));
		cr_assert_eq(record.type, i + 1);
		cr_assert_eq(record.length, strlen(texts[i]));
		cr_assert_arr_eq(record.payload, texts[i], record.length);
	}
	cr_assert_not(extension_next(&area, &cursor, &record));
}

Test(extension, removing_a_type_keeps_the_others)
{
	struct extension_record record;
	uint32_t cursor = 0;

	for (uint32_t i = 0; i < 9; i++)
		cr_assert_eq(extension_add(&area, i % 3 + 1, &i, sizeof(i)), 0);
	cr_assert_eq(extension_remove(&area, 2), 3);
	cr_assert_eq(extension_remove(&area, 7), 0);
	cr_assert(extension_is_walkable(area.data, area.size));
	for (uint32_t i = 0; i < 9; i++) {
		if (i % 3 == 1)
			continue;
		cr_assert(extension_next(&area, &cursor, &record));
		cr_assert_eq(*(const uint32_t *)record.payload, i);
	}
	cr_assert_not(extension_next(&area, &cursor, &record));
}

Test(extension, the_room_is_the_limit)
{
	static const uint8_t payload[48];
	uint32_t size;

	area.room = 64;
	cr_assert_eq(extension_add(&area, 1, payload, sizeof(payload)), 0);
	size = area.size;
	cr_assert_eq(extension_add(&area, 1, payload, 1), -ENOSPC);
	cr_assert_eq(extension_add(&area, 1, NULL, 0), 0);
	cr_assert_eq(extension_add(&area, 1, NULL, 0), -ENOSPC);
	cr_assert_eq(extension_add(&area, 1, payload, UINT32_MAX), -ENOSPC);
	cr_assert_eq(area.size, size + 8);
	cr_assert_eq(room[64], 0xee);
}

Test(extension, type_0_is_not_a_type)
{
	cr_assert_eq(extension_add(&area, 0, NULL, 0), -EINVAL);
	cr_assert_eq(area.size, 0);
}

Test(extension, what_cannot_be_walked)
{
	static const struct {
		const char *what;
		uint32_t words[6];
		uint32_t size;
		bool is_walkable;
	} rows[] = {
		{"empty", {0}, 0, true},
		{"one without payload", {1, 0}, 8, true},
		{"one", {1, 4, 7, 0}, 16, true},
		{"half a head", {1, 0}, 4, false},
		{"type 0", {0, 0}, 8, false},
		{"payload longer than the area", {1, 9, 7, 7}, 16, false},
		{"payload without its padding", {1, 4, 7}, 12, false},
		{"longest payload", {1, UINT32_MAX, 7, 7}, 16, false},
		{"payload whose padding overflows", {1, UINT32_MAX - 6, 7, 7}, 16, false},
		{"padding that is not zero", {1, 4, 7, 1}, 16, false},
		{"trailing bytes", {1, 0, 1}, 12, false},
		{"second one damaged", {1, 0, 0, 0}, 16, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(extension_is_walkable(rows[i].words, rows[i].size),
			rows[i].is_walkable, "%s", rows[i].what);
}

Test(extension, too_many_records)
{
	static uint32_t words[2 * (EXTENSION_RECORDS_MAX + 1)];

	for (uint32_t i = 0; i <= EXTENSION_RECORDS_MAX; i++)
		words[2 * i] = 1;
	cr_assert(extension_is_walkable(words, 8 * EXTENSION_RECORDS_MAX));
	cr_assert_not(extension_is_walkable(words, 8 * (EXTENSION_RECORDS_MAX + 1)));
}
