/* Runs in memory. Runs in the tools. */
#include "report/run.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

static bool begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

enum run_kind run_record_kind(const struct run_record *record)
{
	const char *call = record->call;

	if (!strcmp(call, "cuInit"))
		return RUN_INIT;
	if (begins_with(call, "cuDevicePrimaryCtxRetain") || begins_with(call, "cuCtxCreate"))
		return RUN_CONTEXT;
	return begins_with(call, "cuModuleLoad") || begins_with(call, "cuLibraryLoad") ? RUN_LIBRARY
										       : RUN_OTHER;
}

uint64_t run_waited(const struct run *run)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->count; i++)
		sum += run->records[i].visible_us;
	return run->visible_us != RUN_UNKNOWN && run->visible_us > sum ? run->visible_us : sum;
}

uint64_t run_hidden(const struct run *run)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < run->count; i++)
		sum += run->records[i].hidden_us;
	return run->hidden_us != RUN_UNKNOWN && run->hidden_us > sum ? run->hidden_us : sum;
}

uint64_t run_sum(const struct run *run, enum run_kind kind, int device, size_t *ret_count)
{
	uint64_t sum = 0;
	size_t count = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct run_record *record = &run->records[i];

		if (run_record_kind(record) != kind || record->device != device)
			continue;
		sum += record->visible_us;
		count++;
	}
	if (ret_count)
		*ret_count = count;
	return sum;
}

/* Room for one more of `size` bytes each; false without memory. */
static bool grow(void **array, size_t count, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 16;
	void *bigger;

	if (count < *room)
		return true;
	bigger = array_resize(*array, more, size);
	if (!bigger)
		return false;
	*array = bigger;
	*room = more;
	return true;
}

struct run *run_log_add(struct run_log *log)
{
	struct run *run;

	if (!grow((void **)&log->runs, log->count, &log->room, sizeof(*log->runs)))
		return NULL;
	run = &log->runs[log->count++];
	*run = (struct run){.duration_us = RUN_UNKNOWN,
		.first_result_us = RUN_UNKNOWN,
		.visible_us = RUN_UNKNOWN,
		.hidden_us = RUN_UNKNOWN,
		.native_us = RUN_UNKNOWN,
		.conditions = {.rank = CONDITIONS_NO_RANK}};
	return run;
}

struct run_record *run_add_record(struct run *run)
{
	struct run_record *record;

	if (!grow((void **)&run->records, run->count, &run->room, sizeof(*run->records)))
		return NULL;
	record = &run->records[run->count++];
	*record = (struct run_record){.device = -1};
	return record;
}

static int compare_starts(const void *a, const void *b)
{
	const struct run *left = a, *right = b;

	return (left->start_us > right->start_us) - (left->start_us < right->start_us);
}

static int compare_moments(const void *a, const void *b)
{
	const struct run_record *left = a, *right = b;

	return (left->at_us > right->at_us) - (left->at_us < right->at_us);
}

void run_log_sort(struct run_log *log)
{
	if (log->count)
		qsort(log->runs, log->count, sizeof(*log->runs), compare_starts);
	for (size_t i = 0; i < log->count; i++)
		if (log->runs[i].count)
			qsort(log->runs[i].records, log->runs[i].count,
				sizeof(*log->runs[i].records), compare_moments);
}

static void run_done(struct run *run)
{
	for (size_t i = 0; i < run->count; i++) {
		free(run->records[i].call);
		free(run->records[i].object);
		free(run->records[i].how);
	}
	free(run->records);
	free(run->program);
	free(run->task);
	free(run->exit);
}

static void drop(struct run_log *log, uint64_t start_us, bool is_before)
{
	size_t kept = 0;

	for (size_t i = 0; i < log->count; i++) {
		if ((log->runs[i].start_us < start_us) == is_before)
			run_done(&log->runs[i]);
		else
			log->runs[kept++] = log->runs[i];
	}
	log->count = kept;
}

void run_log_drop_before(struct run_log *log, uint64_t start_us)
{
	drop(log, start_us, true);
}

void run_log_drop_from(struct run_log *log, uint64_t start_us)
{
	drop(log, start_us, false);
}

void run_log_append(struct run_log *log, struct run_log *more)
{
	for (size_t i = 0; i < more->count; i++) {
		struct run *run = run_log_add(log);

		if (run)
			*run = more->runs[i];
		else
			run_done(&more->runs[i]);
	}
	log->damaged += more->damaged;
	free(more->runs);
	*more = (struct run_log){0};
}

void run_log_done(struct run_log *log)
{
	for (size_t i = 0; i < log->count; i++)
		run_done(&log->runs[i]);
	free(log->runs);
	*log = (struct run_log){0};
}
