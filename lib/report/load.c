/* Reading logs line by line. Runs in the tools. Must never trust a line: any field may be missing,
 * of another type, or out of range. */
#include "report/load.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST_DEVICES 1024
#define LOG_VERSION 1
/* Two lines of one process reckon its start to within this; the next process of the same number
 * cannot have started, waited for CUDA and logged in less. */
#define SAME_START_US 1000000

enum { LINE_OK, LINE_DAMAGED };

static const char *text_or(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : otherwise;
}

/* A time or size: absent and null are `otherwise`; false for anything but a count. */
static bool read_count(
	const json_t *object, const char *key, uint64_t otherwise, uint64_t *ret_value)
{
	const json_t *value = json_object_get(object, key);

	*ret_value = otherwise;
	if (!value || json_is_null(value))
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*ret_value = (uint64_t)json_integer_value(value);
	return true;
}

static bool read_int(const json_t *object, const char *key, int otherwise, int *ret_value)
{
	const json_t *value = json_object_get(object, key);

	*ret_value = otherwise;
	if (!value || json_is_null(value))
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < INT_MIN ||
		json_integer_value(value) > INT_MAX)
		return false;
	*ret_value = (int)json_integer_value(value);
	return true;
}

/* "2026-11-30T18:00:00.123456Z" in microseconds since 1970. */
static bool read_time(const json_t *object, const char *key, uint64_t *ret_us)
{
	const char *text = text_or(object, key, "");
	unsigned micro = 0;
	struct tm tm = {0};
	time_t seconds;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%6u", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		    &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &micro) < 6)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	seconds = timegm(&tm);
	if (seconds < 0)
		return false;
	*ret_us = (uint64_t)seconds * 1000000 + micro;
	return true;
}

/* A record's figures; false where the line is damaged. */
static bool read_figures(const json_t *object, struct run_record *ret_record)
{
	struct run_record record = {0};

	if (!json_is_object(object) || !*text_or(object, "call", "") ||
		!read_count(object, "at_us", 0, &record.at_us) ||
		!read_count(object, "visible_us", 0, &record.visible_us) ||
		!read_count(object, "hidden_us", 0, &record.hidden_us) ||
		!read_count(object, "size", 0, &record.size) ||
		!read_int(object, "device", -1, &record.device) ||
		!read_int(object, "rc", 0, &record.rc))
		return false;
	*ret_record = record;
	return true;
}

static int add_record(struct run *run, const json_t *object, const struct run_record *figures)
{
	struct run_record *record = run ? run_add_record(run) : NULL;

	if (!record)
		return -ENOMEM;
	*record = *figures;
	record->call = strdup(text_or(object, "call", ""));
	record->object = strdup(text_or(object, "object", ""));
	record->how = strdup(text_or(object, "how", "unknown"));
	return record->call && record->object && record->how ? LINE_OK : -ENOMEM;
}

/* What cannot be is not there. */
static void read_conditions(const json_t *object, struct conditions *ret_conditions)
{
	struct conditions conditions = {.rank = CONDITIONS_NO_RANK};
	const char *cache = text_or(object, "jit_cache", "");
	uint64_t visible, connections;
	int rank;

	if (read_int(object, "rank", CONDITIONS_NO_RANK, &rank) && rank >= 0)
		conditions.rank = rank;
	if (read_count(object, "visible", 0, &visible) && visible <= UINT32_MAX)
		conditions.visible = (uint32_t)visible;
	if (read_count(object, "connections", 0, &connections) && connections <= UINT32_MAX)
		conditions.connections = (uint32_t)connections;
	conditions.is_eager = json_is_true(json_object_get(object, "eager"));
	for (int i = JIT_CACHE_GOOD; i < JIT_CACHE_COUNT; i++)
		if (!strcmp(cache, conditions_cache_name((enum jit_cache)i)))
			conditions.cache = (enum jit_cache)i;
	*ret_conditions = conditions;
}

static bool read_totals(const json_t *object, struct run *run)
{
	json_int_t devices = json_integer_value(json_object_get(object, "devices"));

	run->devices = devices > 0 && devices <= MOST_DEVICES ? (unsigned)devices : 0;
	read_conditions(json_object_get(object, "conditions"), &run->conditions);
	return read_count(object, "duration_us", RUN_UNKNOWN, &run->duration_us) &&
	       read_count(object, "first_result_us", RUN_UNKNOWN, &run->first_result_us) &&
	       read_count(object, "cuda_visible_us", RUN_UNKNOWN, &run->visible_us) &&
	       read_count(object, "cuda_hidden_us", RUN_UNKNOWN, &run->hidden_us) &&
	       read_count(object, "native_estimate_us", RUN_UNKNOWN, &run->native_us);
}

static struct run *begin_run(struct run_log *log, const json_t *object, uint64_t start_us)
{
	struct run *run = run_log_add(log);

	if (!run)
		return NULL;
	run->pid = (long)json_integer_value(json_object_get(object, "pid"));
	run->program = strdup(text_or(object, "program", "?"));
	run->task = strdup(text_or(object, "task", ""));
	run->exit = strdup(text_or(object, "exit", "unknown"));
	run->start_us = start_us;
	return run->program && run->task && run->exit ? run : NULL;
}

/* The history's line: a whole run. */
static int read_run(const json_t *object, struct run_log *log)
{
	struct run checked = {0};
	const json_t *records = json_object_get(object, "records"), *record;
	struct run *run;
	uint64_t start_us;
	size_t i;
	int rc = LINE_OK;

	if (!read_time(object, "start", &start_us) || !read_totals(object, &checked) ||
		(records && !json_is_array(records)))
		return LINE_DAMAGED;
	run = begin_run(log, object, start_us);
	if (!run)
		return -ENOMEM;
	read_totals(object, run);
	run->is_ended = true;
	json_array_foreach(records, i, record)
	{
		struct run_record figures;

		if (!read_figures(record, &figures))
			log->damaged++;
		else if ((rc = add_record(run, record, &figures)) < 0)
			break;
	}
	return rc;
}

/* The run that a line of a HEARTH_LOG belongs to: same process, and the same start as reckoned. */
static struct run *find_run(struct run_log *log, const json_t *object, uint64_t start_us)
{
	long pid = (long)json_integer_value(json_object_get(object, "pid"));

	for (size_t i = log->count; i-- > 0;) {
		struct run *run = &log->runs[i];
		uint64_t apart = run->start_us > start_us ? run->start_us - start_us
							  : start_us - run->start_us;

		if (run->pid == pid && !run->is_ended && apart <= SAME_START_US &&
			!strcmp(run->program, text_or(object, "program", "?")))
			return run;
	}
	return begin_run(log, object, start_us);
}

static int read_call(const json_t *object, struct run_log *log)
{
	struct run_record figures;
	uint64_t ts_us, at_us;

	if (!read_time(object, "ts", &ts_us) || !read_figures(object, &figures))
		return LINE_DAMAGED;
	/* A line's time is that of its call's beginning. */
	at_us = figures.at_us;
	return add_record(
		find_run(log, object, ts_us > at_us ? ts_us - at_us : 0), object, &figures);
}

/* The process's last line; it says nothing about the start, so that it ends the latest open run. */
static int read_exit(const json_t *object, struct run_log *log)
{
	long pid = (long)json_integer_value(json_object_get(object, "pid"));
	struct run checked = {0}, *run = NULL;
	uint64_t ts_us;

	if (!read_time(object, "ts", &ts_us) || !read_totals(object, &checked))
		return LINE_DAMAGED;
	for (size_t i = log->count; i-- > 0 && !run;)
		if (log->runs[i].pid == pid && !log->runs[i].is_ended &&
			!strcmp(log->runs[i].program, text_or(object, "program", "?")))
			run = &log->runs[i];
	if (!run)
		run = begin_run(log, object, ts_us);
	if (!run)
		return -ENOMEM;
	read_totals(object, run);
	if (run->duration_us == RUN_UNKNOWN && ts_us > run->start_us)
		run->duration_us = ts_us - run->start_us;
	free(run->exit);
	run->exit = strdup("exited");
	run->is_ended = true;
	return run->exit ? LINE_OK : -ENOMEM;
}

static int read_line(const char *line, size_t length, struct run_log *log)
{
	json_t *object = json_loadb(line, length, 0, NULL);
	const char *event = text_or(object, "event", "");
	int rc = LINE_OK; /* an event of a later Hearth is no damage */

	if (!json_is_object(object) ||
		json_integer_value(json_object_get(object, "v")) != LOG_VERSION ||
		!json_is_integer(json_object_get(object, "pid")))
		rc = LINE_DAMAGED;
	else if (!strcmp(event, "run"))
		rc = read_run(object, log);
	else if (!strcmp(event, "call"))
		rc = read_call(object, log);
	else if (!strcmp(event, "exit"))
		rc = read_exit(object, log);
	json_decref(object);
	return rc;
}

int load_stream(FILE *from, struct run_log *log)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int rc = 0;

	errno = 0;
	while (rc >= 0 && (length = getline(&line, &room, from)) >= 0) {
		rc = length > 1 ? read_line(line, (size_t)length, log) : LINE_OK;
		if (rc == LINE_DAMAGED)
			log->damaged++;
		errno = 0;
	}
	if (rc >= 0)
		rc = ferror(from) ? -(errno ? errno : EIO) : 0;
	free(line);
	run_log_sort(log);
	return rc;
}

int load_file(const char *path, struct run_log *log)
{
	FILE *from = !strcmp(path, "-") ? stdin : fopen(path, "re");
	int rc;

	if (!from)
		return -errno;
	rc = load_stream(from, log);
	if (from != stdin)
		fclose(from);
	return rc;
}
