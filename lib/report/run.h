/* What Hearth knows about one run of one process: its first calls and its totals, as the broker
 * keeps them (runs.jsonl, one "run" line each) or as the process wrote them itself (HEARTH_LOG,
 * "call" lines and an "exit" line). Times are microseconds. */
#pragma once

#include "region/conditions.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For a time that the log does not say. */
#define RUN_UNKNOWN UINT64_MAX

enum run_kind { RUN_INIT, RUN_CONTEXT, RUN_LIBRARY, RUN_OTHER };

struct run_record {
	char *call;
	char *object; /* "" where there is none */
	char *how;
	int device; /* -1 where no device was current */
	int rc;
	uint64_t at_us, visible_us, hidden_us, size;
};

struct run {
	long pid;
	char *program;
	char *task;           /* "" where there is none */
	char *exit;           /* "exited", "killed", "unknown" */
	uint64_t start_us;    /* realtime; of a HEARTH_LOG, as its first line lets us reckon */
	uint64_t duration_us; /* RUN_UNKNOWN where nobody saw the end */
	uint64_t first_result_us;
	uint64_t visible_us; /* totals as logged, RUN_UNKNOWN where the end is missing */
	uint64_t hidden_us;
	uint64_t native_us;
	unsigned devices; /* visible to it; 0 = not known */
	struct conditions conditions;
	bool is_ended;
	struct run_record *records;
	size_t count, room;
};

/* Runs in the order in which they began. */
struct run_log {
	struct run *runs;
	size_t count, room;
	size_t damaged; /* lines that could not be read */
};

/* Part of a first use that a call belongs to. */
enum run_kind run_record_kind(const struct run_record *record);

/* What the records say the program waited, or the logged total where that is more (records can be
 * lost, sums not). A call that others happened in counts without them (lib/preload/first_call.c).
 */
uint64_t run_waited(const struct run *run);
uint64_t run_hidden(const struct run *run);

/* The sum over records of a kind on a device; *ret_count how many (may be NULL). */
uint64_t run_sum(const struct run *run, enum run_kind kind, int device, size_t *ret_count);

/* Adds an empty run or record, or NULL without memory. Valid until the next one is added. */
struct run *run_log_add(struct run_log *log);
struct run_record *run_add_record(struct run *run);

/* Orders runs, and the records in each, by their beginning. */
void run_log_sort(struct run_log *log);

/* Forgets the runs that began before a moment (realtime), or at it and after it. */
void run_log_drop_before(struct run_log *log, uint64_t start_us);
void run_log_drop_from(struct run_log *log, uint64_t start_us);

/* The runs of `more` go to the end of the log; `more` is empty then. Without memory they are lost.
 */
void run_log_append(struct run_log *log, struct run_log *more);

void run_log_done(struct run_log *log);
