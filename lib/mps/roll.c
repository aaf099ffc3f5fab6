/* Gathering what is shown of a daemon. Runs in the hearth tool; only asks. */
#include "mps/roll.h"

#include "base/settings.h"
#include "launch/keeper_status.h"
#include "mps/daemon.h"
#include "mps/state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BROKER_LIMIT_US 300000

/* The broker's object for this pid, borrowed, or NULL. */
static const json_t *find_client(const json_t *broker, pid_t pid)
{
	const json_t *clients = json_object_get(broker, "clients"), *client;
	size_t i;

	json_array_foreach(clients, i, client)
	{
		if (json_integer_value(json_object_get(client, "pid")) == pid)
			return client;
	}
	return NULL;
}

/* The name that the kernel has of it; what the broker knows is better. */
static void name_of(pid_t pid, char ret_name[32])
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "re");
	if (!file || !fgets(ret_name, 32, file))
		strcpy(ret_name, "?");
	ret_name[strcspn(ret_name, "\n")] = '\0';
	for (char *at = ret_name; *at; at++) /* JSON takes UTF-8 alone */
		if (*at < ' ' || *at > '~')
			*at = '?';
	if (file)
		fclose(file);
}

static json_t *make_client(const json_t *broker, pid_t pid)
{
	const json_t *known = find_client(broker, pid);
	const char *program = json_string_value(json_object_get(known, "program"));
	const char *task = json_string_value(json_object_get(known, "task"));
	char path[64], name[32];
	struct stat info;

	name_of(pid, name);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &info))
		info.st_uid = (uid_t)-1;
	return json_pack("{s:i, s:I, s:s, s:s}", "pid", (int)pid, "uid", (json_int_t)info.st_uid,
		"program", program ? program : name, "task", task ? task : "");
}

static json_t *make_server(const json_t *broker, const struct daemon_server *server)
{
	json_t *clients = json_array();

	for (size_t i = 0; i < server->client_count; i++)
		json_array_append_new(clients, make_client(broker, server->clients[i]));
	return json_pack("{s:i, s:I, s:s, s:o}", "pid", (int)server->pid, "uid",
		(json_int_t)server->uid, "state", *server->state ? server->state : "?", "clients",
		clients);
}

static json_t *make_servers(const struct daemon_servers *servers)
{
	json_t *list = json_array(), *broker = NULL;
	struct settings settings;
	struct ask_reply reply;

	settings_read(&settings);
	if (keeper_status_ask_within(&settings, BROKER_LIMIT_US, &reply, &broker))
		broker = NULL;
	for (size_t i = 0; i < servers->count; i++)
		json_array_append_new(list, make_server(broker, &servers->items[i]));
	json_decref(broker);
	return list;
}

json_t *roll_make(const struct place *place, pid_t supervisor, const struct control *control)
{
	json_t *roll = supervisor ? state_read(place, STATE_FILE) : NULL, *limits;
	struct daemon_servers servers;
	int rc = -ENOENT;

	if (!roll)
		roll = json_object();
	json_object_set_new(roll, "v", json_integer(1));
	json_object_set_new(roll, "running", json_boolean(supervisor != 0));
	json_object_set_new(roll, "system", json_boolean(place->is_machine));
	json_object_set_new(roll, "pipe", json_string(place->pipe));
	json_object_set_new(roll, "log", json_string(place->log));
	limits = state_read(place, STATE_LIMITS);
	json_object_set_new(roll, "limits", limits ? limits : json_object());
	if (supervisor && control)
		rc = daemon_list(control, &servers);
	json_object_set_new(roll, "servers", rc ? json_null() : make_servers(&servers));
	if (supervisor && rc)
		json_object_set_new(
			roll, "why", json_sprintf("the daemon does not answer: %s", strerror(-rc)));
	return roll;
}

size_t roll_clients(const json_t *roll)
{
	const json_t *servers = json_object_get(roll, "servers"), *server;
	size_t count = 0, i;

	json_array_foreach(servers, i, server)
	{
		count += json_array_size(json_object_get(server, "clients"));
	}
	return count;
}
