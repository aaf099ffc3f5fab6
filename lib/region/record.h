/* Records in a page: written by the program, read by anyone as hostile data. */
#pragma once

#include "hearth/region.h"
#include "region/conditions.h"

#include <stdbool.h>
#include <stdint.h>

/* Publishes a record: `record` is copied but for its seq, and the page's totals grow. Threads of
 * one process may write at once. 0, or RECORD_LOST where the page is full (totals still grow). No
 * syscall, no lock; survives a page that the other side scribbles on. */
#define RECORD_LOST 1
int record_write(struct hearth_page *page, const struct hearth_record *record);

/* Fills a record's `call` and `object` (NULL: none), cut to what fits. */
void record_name(struct hearth_record *record, const char *call, const char *object);

/* 0 where every field of a private copy is within its bounds, else -EBADMSG. */
int record_check(const struct hearth_record *record);

/* Copies record `index` out of a page that its writer may change at any moment, then checks the
 * copy. 0, RECORD_NONE where none was published there, -EBADMSG. */
#define RECORD_NONE 1
int record_copy(const struct hearth_page *page, uint32_t index, struct hearth_record *ret_record);

/* The totals of a page, copied and cut to what is possible. */
struct record_totals {
	uint32_t flags;        /* HEARTH_PAGE_* */
	uint32_t record_count; /* at most HEARTH_MAX_RECORDS */
	uint32_t records_lost;
	uint32_t device_count; /* at most HEARTH_MAX_DEVICES */
	uint64_t start_realtime_us;
	uint64_t first_result_us; /* 0 = none */
	uint64_t visible_us;
	uint64_t hidden_us;
	uint64_t lookup_us;
	struct conditions conditions;
};
void record_totals(const struct hearth_page *page, struct record_totals *ret_totals);

/* "cold", "warm", ...; NULL for a value that is none. And back: 0 for a name that is none. */
const char *record_how_name(uint32_t how);
uint32_t record_how_parse(const char *name);
