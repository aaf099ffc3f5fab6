/* `hearth status`: what the broker and its keeper hold, and for whom. Only asks. */
#include "command.h"
#include "launch/warm.h"
#include "options.h"
#include "report/figure.h"
#include "report/table.h"
#include "tell.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define DURATION_SIZE 32
#define MAX_WAIT_S 86400
#define WAITED_IN_VAIN 2
#define NOBODY_ANSWERS (-1)

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static uint64_t count_of(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value > 0 ? (uint64_t)value : 0;
}

static const char *format_duration(uint64_t seconds, char ret_text[DURATION_SIZE])
{
	if (seconds < 120)
		snprintf(ret_text, DURATION_SIZE, "%" PRIu64 " s", seconds);
	else if (seconds < 7200)
		snprintf(ret_text, DURATION_SIZE, "%" PRIu64 " min", (seconds + 30) / 60);
	else
		snprintf(ret_text, DURATION_SIZE, "%" PRIu64 " h", (seconds + 1800) / 3600);
	return ret_text;
}

/* Prints text of the broker's, which has it from programs, harmless. */
static void print_text(const char *before, const char *text, const char *after)
{
	char *clean = table_text_clean(text);

	printf("%s%s%s", before, clean ? clean : "?", after);
	free(clean);
}

static void print_broker(const json_t *status)
{
	char duration[DURATION_SIZE], size[FIGURE_SIZE];

	print_text("hearthd ", text_of(status, "version"), "");
	printf(", pid %" PRIu64 ", up %s, %s of host memory", count_of(status, "pid"),
		format_duration(count_of(status, "up_s"), duration),
		figure_size(count_of(status, "rss_bytes"), size));
	print_text(
		json_is_true(json_object_get(status, "system")) ? ", the machine's, at " : ", at ",
		text_of(status, "socket"), "\n");
	print_text("  it ", text_of(status, "leaves"), "");
	if (json_is_integer(json_object_get(status, "leaves_in_s")))
		printf(" within %s", format_duration(count_of(status, "leaves_in_s"), duration));
	if (json_is_integer(json_object_get(status, "job_pid")))
		printf(", and with its job (pid %" PRIu64 ")", count_of(status, "job_pid"));
	puts("");
}

static void print_keeper(const json_t *keeper)
{
	char duration[DURATION_SIZE], size[FIGURE_SIZE], time[FIGURE_SIZE];
	uint64_t version = count_of(keeper, "driver_version");

	print_text("keeper: ", text_of(keeper, "state"), "");
	printf(" for %s", format_duration(count_of(keeper, "since_s"), duration));
	if (json_is_string(json_object_get(keeper, "reason")))
		print_text(" (", text_of(keeper, "reason"), ")");
	if (count_of(keeper, "rc"))
		printf(", its last call returned %" PRIu64, count_of(keeper, "rc"));
	if (count_of(keeper, "pid"))
		printf(", pid %" PRIu64 ", %s of host memory", count_of(keeper, "pid"),
			figure_size(count_of(keeper, "rss_bytes"), size));
	if (json_is_integer(json_object_get(keeper, "starts_in_s")))
		printf(", starts in %s",
			format_duration(count_of(keeper, "starts_in_s"), duration));
	puts("");
	if (count_of(keeper, "init_us"))
		printf("  its own cuInit took %s\n",
			figure_time(count_of(keeper, "init_us"), time));
	if (json_is_string(json_object_get(keeper, "driver"))) {
		print_text("  driver ", text_of(keeper, "driver"), "");
		printf(", CUDA %" PRIu64 ".%" PRIu64 "\n", version / 1000, version % 1000 / 10);
	}
}

/* What the broker says of the proof that speculation can be undone, and what that means. */
static void print_proof(const json_t *status)
{
	static const struct {
		const char *state, *meaning;
	} meanings[] = {
		{"passed", "what programs did before is done ahead for them"},
		{"failed", "nothing is done ahead with this driver; see `hearth doctor`"},
		{"not proven", "nothing is done ahead yet; `hearth doctor --prove` proves it now"},
		{"proving", "it takes some seconds"},
		{"off", "without a keeper or a state folder nothing is proven by itself"},
	};
	const char *state = text_of(status, "proof");

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (!strcmp(state, meanings[i].state))
			printf("proof: %s (%s)\n", state, meanings[i].meaning);
}

static void print_devices(const json_t *devices)
{
	static const struct table_column columns[] = {{"device", TABLE_RIGHT, 0},
		{"name", TABLE_LEFT, 40}, {"pci", TABLE_LEFT, 0}, {"memory", TABLE_RIGHT, 0},
		{"the keeper holds", TABLE_LEFT, 0}, {"compute mode", TABLE_LEFT, 0}};
	struct table *table;
	const json_t *device;
	char size[FIGURE_SIZE];
	bool holds_any = false;
	size_t i;

	if (!json_array_size(devices))
		return;
	table = table_new(sizeof(columns) / sizeof(columns[0]), columns);
	json_array_foreach(devices, i, device)
	{
		uint64_t held = count_of(device, "keeper_bytes_estimate");
		bool has_context = json_is_true(json_object_get(device, "keeper_has_context"));

		holds_any = holds_any || held;
		table_cell(table, "%" PRIu64, count_of(device, "ordinal"));
		table_cell(table, "%s", text_of(device, "name"));
		table_cell(table, "%s", text_of(device, "pci"));
		table_cell(table, "%s", figure_size(count_of(device, "memory_bytes"), size));
		if (held)
			table_cell(table, "about %s%s", figure_size(held, size),
				has_context ? ", a context" : "");
		else
			table_cell(table, "nothing");
		table_cell(table, "%s", text_of(device, "compute_mode"));
	}
	puts("");
	table_print(table, stdout);
	table_free(table);
	if (holds_any)
		puts("What the keeper holds is no leak: it keeps cuInit short. `hearth release` "
		     "frees it.");
}

static void print_clients(const json_t *status)
{
	static const struct table_column columns[] = {{"pid", TABLE_RIGHT, 0},
		{"program", TABLE_LEFT, 32}, {"task", TABLE_LEFT, 32}, {"began", TABLE_LEFT, 0},
		{"waited", TABLE_RIGHT, 0}, {"hidden", TABLE_RIGHT, 0}};
	const json_t *clients = json_object_get(status, "clients"), *client;
	uint64_t count = count_of(status, "client_count");
	struct table *table;
	char time[FIGURE_SIZE];
	size_t i;

	printf("\n%" PRIu64 " client%s", count, count == 1 ? "" : "s");
	if (count > json_array_size(clients))
		printf(", %" PRIu64 " of other users", count - (uint64_t)json_array_size(clients));
	puts("");
	if (!json_array_size(clients))
		return;
	table = table_new(sizeof(columns) / sizeof(columns[0]), columns);
	json_array_foreach(clients, i, client)
	{
		table_cell(table, "%" PRIu64, count_of(client, "pid"));
		table_cell(table, "%s", text_of(client, "program"));
		table_cell(table, "%s", text_of(client, "task"));
		table_cell(table, "%.19s", text_of(client, "start"));
		table_cell(table, "%s", figure_time(count_of(client, "visible_us"), time));
		table_cell(table, "%s", figure_time(count_of(client, "hidden_us"), time));
	}
	table_print(table, stdout);
	table_free(table);
}

/* Nobody there is an answer too: in JSON it is one object, with status 1 as in text. */
static int print_failure(int rc, const struct ask_reply *reply, bool is_json)
{
	if (!is_json || rc != -ENOENT)
		return tell_failure(rc, reply);
	command_print_json(json_pack("{s:b, s:s}", "running", 0, "socket",
				   *reply->address.path ? reply->address.path : ADDRESS_SYSTEM),
		stdout);
	return COMMAND_FAILED;
}

static int print_status(bool is_json)
{
	struct settings settings;
	struct ask_reply reply;
	json_t *status;
	int rc;

	settings_read(&settings);
	rc = keeper_status_ask(&settings, &reply, &status);
	if (rc)
		return print_failure(rc, &reply, is_json);
	if (is_json) {
		json_object_set_new(status, "running", json_true());
		return command_print_json(status, stdout);
	}
	print_broker(status);
	print_keeper(json_object_get(status, "keeper"));
	print_proof(status);
	print_devices(json_object_get(status, "devices"));
	print_clients(status);
	json_decref(status);
	return fflush(stdout) ? command_fail(COMMAND_FAILED, "stdout: %s", strerror(errno))
			      : COMMAND_OK;
}

/* Says why it is not warm. NOBODY_ANSWERS, after which nothing is left to be shown. */
static int wait_until_warm(unsigned seconds, bool is_json)
{
	char why[WARM_TEXT_SIZE];
	struct keeper_status status;
	struct settings settings;
	struct ask_reply reply;
	int asked, rc;

	settings_read(&settings);
	rc = warm_wait(&settings, seconds, NULL, &status, &reply, &asked);
	if (!rc)
		return COMMAND_OK;
	if (asked) {
		print_failure(asked, &reply, is_json);
		return NOBODY_ANSWERS;
	}
	warm_explain(&status, why);
	if (rc == WARM_NEVER || !strcmp(status.state, "failed"))
		return command_fail(COMMAND_FAILED, "no GPU is kept: %s", why);
	return command_fail(WAITED_IN_VAIN, "not warm after %u s: %s", seconds, why);
}

static int run(int argc, char **argv)
{
	bool is_json = false;
	unsigned seconds = UINT_MAX;
	const struct option_row rows[] = {{.name = "json", .flag = &is_json},
		{.name = "wait", .number = &seconds, .most = MAX_WAIT_S}, {0}};
	char **words;
	int shown, waited = COMMAND_OK;
	int status = options_take(&command_status, rows, WORDS_NONE, argc, argv, &words);

	if (status != OPTIONS_TAKEN)
		return status;
	if (seconds != UINT_MAX)
		waited = wait_until_warm(seconds, is_json);
	if (waited == NOBODY_ANSWERS)
		return WAITED_IN_VAIN;
	shown = print_status(is_json);
	return waited ? waited : shown;
}

const struct command command_status = {
	.name = "status",
	.arguments = "[--wait SECONDS] [--json]",
	.summary = "Show the broker, its keeper, what it holds, and its clients",
	.help = "  --wait SECONDS  until the keeper is warm, at most so long; 0 looks once\n"
		"  --json          as JSON\n"
		"\n"
		"The status is 1 where no broker runs. With --wait it is 0 where the keeper is "
		"warm, 1\n"
		"where it keeps no GPU (none there, none asked for, or an error), 2 where the time "
		"is up.\n",
	.run = run,
};
