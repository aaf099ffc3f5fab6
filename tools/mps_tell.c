/* Showing a daemon of MPS: text for people, from what lib/mps gathered. */
#include "mps_tell.h"

#include "command.h"
#include "report/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static int number_of(const json_t *object, const char *key)
{
	return (int)json_integer_value(json_object_get(object, key));
}

void mps_tell_started(const struct place *place)
{
	printf("MPS runs: `hearth run --mps -- PROGRAM`, or CUDA_MPS_PIPE_DIRECTORY=%s\n"
	       "It gives no isolation: a client's fault can end the others. For programs that "
	       "trust one\nanother, on this machine.\n",
		place->pipe);
}

void mps_tell_limits(const json_t *limits)
{
	json_t *memory = json_object_get(limits, "memory"), *value;
	const char *device;

	if (json_is_integer(json_object_get(limits, "threads")))
		printf("threads: %d%% of each GPU for each client that starts from now on\n",
			number_of(limits, "threads"));
	json_object_foreach(memory, device, value)
	{
		printf("memory on device %s: %s for each client that starts from now on\n", device,
			strcmp(json_string_value(value), "0") ? json_string_value(value)
							      : "no limit");
	}
	if (!json_object_size(limits))
		puts("no limits");
}

void mps_tell_clients(const json_t *roll, FILE *to)
{
	static const struct table_column columns[] = {{"client", TABLE_RIGHT, 0},
		{"uid", TABLE_RIGHT, 0}, {"program", TABLE_LEFT, 32}, {"task", TABLE_LEFT, 32},
		{"server", TABLE_RIGHT, 0}};
	const json_t *servers = json_object_get(roll, "servers"), *server, *client;
	struct table *table = table_new(sizeof(columns) / sizeof(columns[0]), columns);
	size_t i, j;

	json_array_foreach(servers, i, server)
	{
		json_array_foreach(json_object_get(server, "clients"), j, client)
		{
			table_cell(table, "%d", number_of(client, "pid"));
			table_cell(table, "%d", number_of(client, "uid"));
			table_cell(table, "%s", text_of(client, "program"));
			table_cell(table, "%s", text_of(client, "task"));
			table_cell(table, "%d", number_of(server, "pid"));
		}
	}
	table_print(table, to);
	table_free(table);
}

void mps_tell_status(const json_t *roll)
{
	const json_t *servers = json_object_get(roll, "servers"), *server;
	const char *why = text_of(roll, "why");
	size_t count = 0, i;

	if (!json_is_true(json_object_get(roll, "running"))) {
		printf("MPS: no daemon of Hearth's runs\n");
		return;
	}
	printf("MPS: %s%s, supervisor pid %d, daemon pid %d, restarted %d times\n",
		json_is_true(json_object_get(roll, "system")) ? "the machine's, " : "",
		text_of(roll, "phase"), number_of(roll, "supervisor"), number_of(roll, "daemon"),
		number_of(roll, "restarts"));
	printf("  CUDA_MPS_PIPE_DIRECTORY=%s\n", text_of(roll, "pipe"));
	if (*why)
		printf("  %s\n", why);
	json_array_foreach(servers, i, server)
	{
		size_t clients = json_array_size(json_object_get(server, "clients"));

		count += clients;
		printf("server: pid %d of uid %d, %s, %zu client%s with a context\n",
			number_of(server, "pid"), number_of(server, "uid"),
			text_of(server, "state"), clients, clients == 1 ? "" : "s");
	}
	mps_tell_limits(json_object_get(roll, "limits"));
	if (count)
		mps_tell_clients(roll, stdout);
}

/* Where the last `lines` lines of the text begin. */
static const char *tail_of(const char *text, size_t size, unsigned lines)
{
	const char *at = text + size;

	while (at > text) {
		if (at[-1] == '\n' && at < text + size && !lines--)
			break;
		at--;
	}
	return at;
}

static int print_log(const struct place *place, const char *name, unsigned lines)
{
	static char text[256 * 1024 + 1];
	char path[ADDRESS_MAX * 2];
	FILE *file;
	size_t got;

	snprintf(path, sizeof(path), "%s/%s", place->log, name);
	file = fopen(path, "re");
	if (!file)
		return command_fail(COMMAND_FAILED, "%s: %s", path, strerror(errno));
	if (!fseek(file, 0, SEEK_END) && ftell(file) > (long)sizeof(text) - 1)
		fseek(file, -(long)(sizeof(text) - 1), SEEK_END);
	else
		rewind(file);
	got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[got] = '\0';
	printf("%s:\n%s", path, tail_of(text, got, lines - 1));
	return COMMAND_OK;
}

int mps_tell_logs(const struct place *place, unsigned lines)
{
	int status = print_log(place, "control.log", lines);

	if (!status)
		status = print_log(place, "server.log", lines);
	return fflush(stdout) ? COMMAND_FAILED : status;
}
