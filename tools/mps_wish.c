/* What `hearth mps start` and `limit` are told, checked, and written beside the daemon, where
 * the supervisor reads it. */
#include "mps_wish.h"

#include "command.h"
#include "mps/limit.h"
#include "mps/state.h"

#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int mps_wish_add_limits(const struct mps_wish *wish, json_t *limits)
{
	char memory[LIMIT_VALUE], *end;
	unsigned percent;

	if (strtoul(wish->device, &end, 10) >= 64 || *end || end == wish->device)
		return command_fail(
			COMMAND_USAGE, "--device: '%s' is no device's number", wish->device);
	if (wish->memory && limit_parse_memory(wish->memory, memory))
		return command_fail(COMMAND_USAGE,
			"--mem: '%s' is no amount such as 2GiB or 512MiB", wish->memory);
	if (wish->threads && limit_parse_threads(wish->threads, &percent))
		return command_fail(
			COMMAND_USAGE, "--threads: '%s' is not from 1%% to 100%%", wish->threads);
	if (wish->threads)
		json_object_set_new(limits, "threads", json_integer(percent));
	if (wish->memory) {
		json_t *devices = json_object_get(limits, "memory");

		if (!devices) {
			devices = json_object();
			json_object_set_new(limits, "memory", devices);
		}
		json_object_set_new(devices, wish->device, json_string(memory));
	}
	return COMMAND_OK;
}

static int add_user(json_t *uids, const char *name)
{
	char *end;
	unsigned long number = strtoul(name, &end, 10);
	const struct passwd *user = getpwnam(name);

	if (!user && (*end || end == name || number > UINT32_MAX))
		return command_fail(COMMAND_USAGE, "--users: '%s' is no user", name);
	json_array_append_new(
		uids, json_integer(user ? (json_int_t)user->pw_uid : (json_int_t)number));
	return COMMAND_OK;
}

int mps_wish_read_users(const struct mps_wish *wish, json_t **ret_users)
{
	json_t *uids = json_array();
	char *list = strdup(wish->users ? wish->users : ""), *rest = list, *name;
	int status = COMMAND_OK;

	if (wish->users && !wish->is_system)
		status = command_fail(COMMAND_USAGE,
			"--users: only with --system: one's own daemon is one's own");
	while (!status && rest && (name = strsep(&rest, ",")))
		if (*name)
			status = add_user(uids, name);
	free(list);
	if (status)
		json_decref(uids);
	else
		*ret_users = json_pack("{s:o}", "uids", uids);
	return status;
}

int mps_wish_store(const struct place *place, const char *name, json_t *json)
{
	int rc = state_write(place, name, json);

	return rc ? command_fail(COMMAND_FAILED, "%s/%s: %s", place->folder, name, strerror(-rc))
		  : COMMAND_OK;
}
