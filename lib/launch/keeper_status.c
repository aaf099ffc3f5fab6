/* Reading the broker's status. Runs in the tools. The JSON is the broker's, and not trusted: what
 * is missing counts as unknown. */
#include "launch/keeper_status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATUS_VERSION 1
#define SIMULATED_NAME "SIMULATED" /* how lib/sim's device names begin */

int keeper_status_ask(
	const struct settings *settings, struct ask_reply *ret_reply, json_t **ret_json)
{
	return keeper_status_ask_within(settings, ASK_LIMIT_US, ret_reply, ret_json);
}

int keeper_status_ask_within(const struct settings *settings, uint64_t limit_us,
	struct ask_reply *ret_reply, json_t **ret_json)
{
	struct wire_message message;
	json_t *json;
	int rc;

	wire_init(&message, WIRE_STATUS);
	rc = ask_broker_within(settings, &message, limit_us, ret_reply);
	if (rc)
		return rc;
	json = ret_reply->text ? json_loadb(ret_reply->text, ret_reply->length, 0, NULL) : NULL;
	free(ret_reply->text);
	ret_reply->text = NULL;
	if (!json_is_object(json) ||
		json_integer_value(json_object_get(json, "v")) != STATUS_VERSION) {
		json_decref(json);
		return -EPROTO;
	}
	*ret_json = json;
	return 0;
}

static void copy_text(char *ret_text, size_t size, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	snprintf(ret_text, size, "%s", text ? text : "");
}

void keeper_status_read(const json_t *json, struct keeper_status *ret_status)
{
	const json_t *keeper = json_object_get(json, "keeper"), *device;
	struct keeper_status status = {0};
	size_t i;

	copy_text(status.state, sizeof(status.state), keeper, "state");
	copy_text(status.reason, sizeof(status.reason), keeper, "reason");
	copy_text(status.driver, sizeof(status.driver), keeper, "driver");
	status.is_of_machine = json_is_true(json_object_get(json, "system"));
	status.pid = (pid_t)json_integer_value(json_object_get(keeper, "pid"));
	status.rc = (int)json_integer_value(json_object_get(keeper, "rc"));
	json_array_foreach(json_object_get(json, "devices"), i, device)
	{
		const char *name = json_string_value(json_object_get(device, "name"));

		status.has_devices = true;
		if (name && !strncmp(name, SIMULATED_NAME, strlen(SIMULATED_NAME)))
			status.is_simulated = true;
	}
	*ret_status = status;
}

static bool is_same_file(const char *one, const char *other)
{
	struct stat first, second;

	if (stat(one, &first) || stat(other, &second))
		return !strcmp(one, other);
	return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool keeper_status_is_for_other(const struct keeper_status *status, const char *driver)
{
	if (!driver || status->is_of_machine)
		return false;
	if (!*status->driver)
		return !strcmp(status->reason, KEEPER_REASON_NO_DRIVER) && !access(driver, F_OK);
	return !is_same_file(status->driver, driver);
}

const char *keeper_status_driver(const struct keeper_status *status)
{
	return *status->driver ? status->driver : "no driver";
}
