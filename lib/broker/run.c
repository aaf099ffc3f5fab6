/* Making the line of a run, on hearthd's main thread. Everything that comes from the page is copied
 * and checked; a record that does not hold is left out and counted. */
#include "broker/run.h"

#include "base/clock.h"
#include "base/json_out.h"
#include "broker/client.h"
#include "broker/page.h"
#include "region/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINE_MAX_BYTES                                                                             \
	(256 * 1024) /* 254 records with every byte of every text escaped: 165 KiB                 \
		      */

enum run_exit { RUN_UNKNOWN, RUN_EXITED, RUN_KILLED };

/* linux/pidfd.h of Linux 6.15, first version of the struct. */
struct pidfd_info {
	uint64_t mask;
	uint64_t cgroupid;
	uint32_t ids[11];
	int32_t exit_code;
};
#define INFO_EXIT (UINT64_C(1) << 3)
#define GET_INFO _IOWR(0xff, 11, struct pidfd_info)

static enum run_exit from_status(int status)
{
	return WIFSIGNALED(status) ? RUN_KILLED : RUN_EXITED;
}

static bool ask_pidfd(int pidfd, enum run_exit *ret_exit)
{
	struct pidfd_info info = {.mask = INFO_EXIT};

	if (ioctl(pidfd, GET_INFO, &info) < 0 || !(info.mask & INFO_EXIT))
		return false;
	*ret_exit = from_status(info.exit_code);
	return true;
}

/* The exit code is the last field of /proc/PID/stat (proc(5)); the name before it may hold spaces
 * and brackets. */
static bool ask_proc(int pid, enum run_exit *ret_exit)
{
	char path[32], text[1024], *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return false;
	text[got] = 0;
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || at[2] != 'Z')
		return false;
	at = strrchr(at, ' ');
	*ret_exit = from_status(atoi(at + 1));
	return true;
}

static enum run_exit exit_of(int pidfd, int pid, uint32_t flags)
{
	enum run_exit how;

	if (flags & HEARTH_PAGE_EXITED)
		return RUN_EXITED;
	if (ask_pidfd(pidfd, &how) || (pid > 0 && ask_proc(pid, &how)) || ask_pidfd(pidfd, &how))
		return how;
	return RUN_UNKNOWN;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

static void write_record(struct json_out *out, const struct hearth_record *record)
{
	json_out_object_begin(out, NULL);
	json_out_string(out, "call", record->call);
	if (record->object[0])
		json_out_string(out, "object", record->object);
	else
		json_out_null(out, "object");
	if (record->device >= 0)
		json_out_i64(out, "device", record->device);
	else
		json_out_null(out, "device");
	json_out_u64(out, "at_us", record->at_us);
	json_out_u64(out, "visible_us", record->visible_us);
	json_out_u64(out, "hidden_us", record->hidden_us);
	json_out_i64(out, "rc", record->rc);
	json_out_string(out, "how", record_how_name(record->how));
	json_out_u64(out, "size", record->size);
	json_out_object_end(out);
}

static void write_records(struct json_out *out, const struct hearth_page *page, uint32_t count)
{
	uint32_t damaged = 0;

	json_out_array_begin(out, "records");
	for (uint32_t i = 0; i < count; i++) {
		struct hearth_record record;
		int rc = record_copy(page, i, &record);

		if (!rc)
			write_record(out, &record);
		else if (rc < 0)
			damaged++;
	}
	json_out_array_end(out);
	json_out_u64(out, "records_damaged", damaged);
}

static void write_run(struct json_out *out, const struct client *client, enum run_exit how,
	uint64_t now_realtime_us, const struct hearth_page *page,
	const struct record_totals *totals)
{
	static const char *const exit_names[] = {
		[RUN_UNKNOWN] = "unknown", [RUN_EXITED] = "exited", [RUN_KILLED] = "killed"};
	uint64_t start_us = client->start_realtime_us;
	char start[CLOCK_TEXT_SIZE];

	if (!start_us || start_us > now_realtime_us)
		start_us = now_realtime_us;
	clock_format(start_us, start);
	json_out_object_begin(out, NULL);
	json_out_u64(out, "v", 1);
	json_out_string(out, "event", "run");
	json_out_i64(out, "pid", client->peer.pid);
	json_out_string(out, "task", client->task);
	json_out_string(out, "program", client->program);
	json_out_string(out, "start", start);
	json_out_u64(out, "duration_us", now_realtime_us - start_us);
	json_out_string(out, "exit", exit_names[how]);
	json_out_u64(out, "devices", totals->device_count);
	conditions_print(out, &totals->conditions);
	if (totals->first_result_us)
		json_out_u64(out, "first_result_us", totals->first_result_us);
	else
		json_out_null(out, "first_result_us");
	json_out_u64(out, "cuda_visible_us", totals->visible_us);
	json_out_u64(out, "cuda_hidden_us", totals->hidden_us);
	json_out_u64(out, "native_estimate_us", sum(totals->visible_us, totals->hidden_us));
	json_out_u64(out, "records_lost", totals->records_lost);
	write_records(out, page, totals->record_count);
	json_out_object_end(out);
	json_out_newline(out);
}

/* Of the page as it is now: what is checked is what is written. */
static int make_line(const struct client *client, uint64_t now_realtime_us,
	const struct hearth_page *page, char *line, size_t *ret_length)
{
	struct record_totals totals;
	struct json_out out;
	enum run_exit how;

	record_totals(page, &totals);
	how = exit_of(client->source.fd, client->peer.pid, totals.flags);
	json_out_begin(&out, line, LINE_MAX_BYTES);
	write_run(&out, client, how, now_realtime_us, page, &totals);
	return json_out_end(&out, ret_length);
}

int run_line(
	const struct client *client, uint64_t now_realtime_us, char **ret_line, size_t *ret_length)
{
	struct record_totals totals;
	struct hearth_page *page;
	char *line;
	int rc = page_read_totals(client->page_fd, &totals);

	if (rc)
		return rc;
	if (!totals.record_count && !(totals.flags & HEARTH_PAGE_USES_CUDA))
		return RUN_EMPTY;
	page = malloc(sizeof(*page));
	line = malloc(LINE_MAX_BYTES);
	rc = page && line ? page_read(client->page_fd, page) : -ENOMEM;
	if (!rc)
		rc = make_line(client, now_realtime_us, page, line, ret_length);
	free(page);
	if (rc) {
		free(line);
		return rc;
	}
	*ret_line = line;
	return 0;
}
