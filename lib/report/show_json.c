/* Runs as JSON, in the form of the history's lines. Runs in the tools. */
#include "base/clock.h"
#include "report/show.h"

static json_t *count_or_null(uint64_t value)
{
	return value == RUN_UNKNOWN ? json_null() : json_integer((json_int_t)value);
}

static json_t *record_json(const struct run_record *record)
{
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:i, s:s, s:I}", "call", record->call,
		"object", record->object, "device",
		record->device < 0 ? json_null() : json_integer(record->device), "at_us",
		(json_int_t)record->at_us, "visible_us", (json_int_t)record->visible_us,
		"hidden_us", (json_int_t)record->hidden_us, "rc", record->rc, "how", record->how,
		"size", (json_int_t)record->size);
}

static json_t *conditions_json(const struct conditions *conditions)
{
	return json_pack("{s:o, s:o, s:o, s:b, s:s?}", "rank",
		conditions->rank < 0 ? json_null() : json_integer(conditions->rank), "visible",
		conditions->visible ? json_integer(conditions->visible) : json_null(),
		"connections",
		conditions->connections ? json_integer(conditions->connections) : json_null(),
		"eager", conditions->is_eager, "jit_cache",
		conditions_cache_name(conditions->cache));
}

static json_t *run_json(const struct run *run)
{
	json_t *records = json_array(), *json;
	char start[CLOCK_TEXT_SIZE];

	clock_format(run->start_us, start);
	for (size_t i = 0; i < run->count; i++)
		json_array_append_new(records, record_json(&run->records[i]));
	json = json_pack("{s:i, s:s, s:I, s:s, s:s, s:s, s:o, s:s, s:o, s:I, s:I, s:o, s:o}", "v",
		1, "event", "run", "pid", (json_int_t)run->pid, "task", run->task, "program",
		run->program, "start", start, "duration_us", count_or_null(run->duration_us),
		"exit", run->exit, "first_result_us", count_or_null(run->first_result_us),
		"cuda_visible_us", (json_int_t)run_waited(run), "cuda_hidden_us",
		(json_int_t)run_hidden(run), "native_estimate_us", count_or_null(run->native_us),
		"records", records);
	json_object_set_new(json, "devices", json_integer(run->devices));
	json_object_set_new(json, "conditions", conditions_json(&run->conditions));
	return json;
}

json_t *show_json(const struct run_log *log, size_t first)
{
	json_t *runs = json_array();

	for (size_t i = first; i < log->count; i++)
		json_array_append_new(runs, run_json(&log->runs[i]));
	return json_pack("{s:o, s:I}", "runs", runs, "damaged_lines", (json_int_t)log->damaged);
}
