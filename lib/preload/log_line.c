/* Writing HEARTH_LOG. Runs in the user's program, on the thread whose call is recorded and at its
 * end; must leave no descriptor, allocate nothing, and ignore every failure: a full disk is not
 * the program's concern. */
#include "preload/log_line.h"

#include "base/clock.h"
#include "base/json_out.h"
#include "base/own_write.h"
#include "preload/prefetch.h"
#include "preload/program.h"
#include "preload/start.h"
#include "region/record.h"
#include "region/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The longest line: every text at its longest, every byte of it escaped. */
#define LINE_MAX_SIZE 2048
#define LINE_VERSION 1
#define HOST_NAME_SIZE 256

/* Expands %p, %h and %%; other letters stay as they are. */
static int expand(const char *pattern, char ret_path[PATH_MAX])
{
	size_t at = 0;

	for (; *pattern; pattern++) {
		char text[HOST_NAME_SIZE] = {*pattern};
		size_t length;

		if (*pattern == '%' && pattern[1] == 'p')
			snprintf(text, sizeof(text), "%ld", (long)getpid());
		else if (*pattern == '%' && pattern[1] == 'h')
			gethostname(text, sizeof(text) - 1);
		if (*pattern == '%' && pattern[1] && strchr("ph%", pattern[1]))
			pattern++;
		length = strnlen(text, sizeof(text));
		if (at + length >= PATH_MAX)
			return -ENAMETOOLONG;
		memcpy(ret_path + at, text, length);
		at += length;
	}
	ret_path[at] = '\0';
	return 0;
}

static void append(const char *line, size_t length)
{
	char path[PATH_MAX];
	int fd;

	if (expand(start_settings()->log, path))
		return;
	/* Not waiting: a FIFO that nobody reads would hold the program. */
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
	if (fd < 0)
		return;
	if (own_write(fd, line, length) < 0) {
		/* nobody is left to tell */
	}
	close(fd);
}

static void begin_line(struct json_out *out, char *line, const char *event, uint64_t now_us)
{
	char time[CLOCK_TEXT_SIZE], program[PROGRAM_NAME_SIZE];
	char task[WIRE_TASK_SIZE];

	wire_copy_text(task, sizeof(task), start_settings()->task);
	clock_format(now_us, time);
	program_name(program);
	json_out_begin(out, line, LINE_MAX_SIZE);
	json_out_object_begin(out, NULL);
	json_out_u64(out, "v", LINE_VERSION);
	json_out_string(out, "event", event);
	json_out_string(out, "ts", time);
	json_out_u64(out, "pid", (uint64_t)getpid());
	if (*task)
		json_out_string(out, "task", task);
	else
		json_out_null(out, "task");
	json_out_string(out, "program", program);
}

static void end_line(struct json_out *out, const char *line)
{
	size_t length;

	json_out_object_end(out);
	json_out_newline(out);
	if (!json_out_end(out, &length))
		append(line, length);
}

void log_line_call(const struct hearth_record *record)
{
	struct json_out out;
	char line[LINE_MAX_SIZE];

	if (!start_settings()->log)
		return;
	begin_line(&out, line, "call", start_realtime_us() + record->at_us);
	json_out_bytes(&out, "call", record->call, strnlen(record->call, sizeof(record->call)));
	if (record->object[0])
		json_out_bytes(&out, "object", record->object,
			strnlen(record->object, sizeof(record->object)));
	if (record->device >= 0)
		json_out_i64(&out, "device", record->device);
	else
		json_out_null(&out, "device");
	json_out_u64(&out, "at_us", record->at_us);
	json_out_u64(&out, "visible_us", record->visible_us);
	json_out_u64(&out, "hidden_us", record->hidden_us);
	json_out_i64(&out, "rc", record->rc);
	json_out_string(&out, "how", record_how_name(record->how));
	if (record->size)
		json_out_u64(&out, "size", record->size);
	end_line(&out, line);
}

void log_line_exit(const struct hearth_page *page)
{
	struct record_totals totals;
	struct json_out out;
	char line[LINE_MAX_SIZE];
	uint32_t asked, adopted;

	if (!start_settings()->log)
		return;
	record_totals(page, &totals);
	begin_line(&out, line, "exit", clock_realtime_us());
	if (totals.first_result_us)
		json_out_u64(&out, "first_result_us", totals.first_result_us);
	else
		json_out_null(&out, "first_result_us");
	json_out_u64(&out, "cuda_visible_us", totals.visible_us);
	json_out_u64(&out, "cuda_hidden_us", totals.hidden_us);
	json_out_u64(&out, "native_estimate_us", totals.visible_us + totals.hidden_us);
	json_out_u64(&out, "devices", totals.device_count);
	conditions_print(&out, &totals.conditions);
	prefetch_counts(&asked, &adopted);
	if (asked) {
		json_out_u64(&out, "images_asked", asked);
		json_out_u64(&out, "images_adopted", adopted);
	}
	end_line(&out, line);
}
