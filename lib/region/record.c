/* Records. record_write runs in the user's program, inside the calls it makes: no syscall, lock or
 * allocation. The readers run in hearthd and the tools and never trust a byte twice. */
#include "region/record.h"

#include <errno.h>
#include <string.h>

static const char *const how_names[] = {
	[HEARTH_COLD] = "cold",
	[HEARTH_WARM] = "warm",
	[HEARTH_SPECULATED] = "speculated",
	[HEARTH_ADOPTED] = "adopted",
	[HEARTH_PREFETCHED] = "prefetched",
	[HEARTH_SQUASHED] = "squashed",
	[HEARTH_JIT] = "jit",
};
#define HOW_COUNT (sizeof(how_names) / sizeof(how_names[0]))

const char *record_how_name(uint32_t how)
{
	return how < HOW_COUNT ? how_names[how] : NULL;
}

uint32_t record_how_parse(const char *name)
{
	for (uint32_t how = HEARTH_COLD; how < HOW_COUNT; how++)
		if (!strcmp(name, how_names[how]))
			return how;
	return 0;
}

static void copy_name(char *ret_text, size_t size, const char *text)
{
	size_t length = text ? strlen(text) : 0;

	if (length >= size)
		length = size - 1;
	memset(ret_text, 0, size);
	if (length)
		memcpy(ret_text, text, length);
}

void record_name(struct hearth_record *record, const char *call, const char *object)
{
	copy_name(record->call, sizeof(record->call), call);
	copy_name(record->object, sizeof(record->object), object);
}

int record_write(struct hearth_page *page, const struct hearth_record *record)
{
	struct hearth_record *place;
	uint32_t index;

	__atomic_fetch_add(&page->visible_us, record->visible_us, __ATOMIC_RELAXED);
	__atomic_fetch_add(&page->hidden_us, record->hidden_us, __ATOMIC_RELAXED);
	/* The count stays at the page's size, so that it can never wrap around. */
	index = __atomic_load_n(&page->record_count, __ATOMIC_RELAXED);
	do {
		if (index >= HEARTH_MAX_RECORDS) {
			__atomic_fetch_add(&page->records_lost, 1, __ATOMIC_RELAXED);
			return RECORD_LOST;
		}
	} while (!__atomic_compare_exchange_n(
		&page->record_count, &index, index + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	place = &page->records[index];
	memcpy(place->call, record->call, sizeof(place->call));
	memcpy(place->object, record->object, sizeof(place->object));
	place->device = record->device;
	place->rc = record->rc;
	place->how = record->how;
	place->at_us = record->at_us;
	place->visible_us = record->visible_us;
	place->hidden_us = record->hidden_us;
	place->size = record->size;
	place->reserved = 0;
	__atomic_store_n(&place->seq, index + 1, __ATOMIC_RELEASE);
	return 0;
}

/* NUL-terminated, nothing behind the NUL, no control characters. */
static bool is_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	if (length == size)
		return false;
	for (size_t i = 0; i < size; i++)
		if (i < length ? (unsigned char)text[i] < 0x20 || text[i] == 0x7f : text[i])
			return false;
	return true;
}

int record_check(const struct hearth_record *record)
{
	if (!is_text(record->call, sizeof(record->call)) || !record->call[0] ||
		!is_text(record->object, sizeof(record->object)))
		return -EBADMSG;
	if (record->device < -1 || record->device >= (int32_t)HEARTH_MAX_DEVICES)
		return -EBADMSG;
	if (!record_how_name(record->how) || record->rc < 0 || record->reserved)
		return -EBADMSG;
	return 0;
}

int record_copy(const struct hearth_page *page, uint32_t index, struct hearth_record *ret_record)
{
	struct hearth_record copy;
	uint32_t seq;

	if (index >= HEARTH_MAX_RECORDS)
		return RECORD_NONE;
	seq = __atomic_load_n(&page->records[index].seq, __ATOMIC_ACQUIRE);
	if (!seq)
		return RECORD_NONE;
	memcpy(&copy, &page->records[index], sizeof(copy));
	/* The compiler may not read the page again behind the copy. */
	__asm__ volatile("" : : "r"(&copy) : "memory");
	if (seq != index + 1 || copy.seq != seq || record_check(&copy))
		return -EBADMSG;
	*ret_record = copy;
	return 0;
}

void record_totals(const struct hearth_page *page, struct record_totals *ret_totals)
{
	struct record_totals totals = {
		.flags = __atomic_load_n(&page->flags, __ATOMIC_ACQUIRE),
		.record_count = __atomic_load_n(&page->record_count, __ATOMIC_RELAXED),
		.records_lost = __atomic_load_n(&page->records_lost, __ATOMIC_RELAXED),
		.device_count = __atomic_load_n(&page->device_count, __ATOMIC_RELAXED),
		.start_realtime_us = __atomic_load_n(&page->start_realtime_us, __ATOMIC_RELAXED),
		.first_result_us = __atomic_load_n(&page->first_result_us, __ATOMIC_RELAXED),
		.visible_us = __atomic_load_n(&page->visible_us, __ATOMIC_RELAXED),
		.hidden_us = __atomic_load_n(&page->hidden_us, __ATOMIC_RELAXED),
		.lookup_us = __atomic_load_n(&page->lookup_us, __ATOMIC_RELAXED),
	};

	if (totals.record_count > HEARTH_MAX_RECORDS)
		totals.record_count = HEARTH_MAX_RECORDS;
	if (totals.device_count > HEARTH_MAX_DEVICES)
		totals.device_count = HEARTH_MAX_DEVICES;
	conditions_get(page, &totals.conditions);
	*ret_totals = totals;
}
