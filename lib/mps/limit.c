/* Limits, from people's words to the daemon's. Runs in the hearth tool and in the supervisor. */
#include "mps/limit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MIB_PER_GIB 1024
#define MOST_MIB (1024.0 * 1024 * 1024) /* a PiB: nothing that a device has */

int limit_parse_memory(const char *text, char ret_value[LIMIT_VALUE])
{
	char *unit;
	double amount = strtod(text, &unit);
	long mib;

	if (!strcmp(text, "none")) {
		strcpy(ret_value, LIMIT_NONE);
		return 0;
	}
	if (unit == text || !(amount > 0))
		return -EINVAL;
	if (!strcasecmp(unit, "G") || !strcasecmp(unit, "GB") || !strcasecmp(unit, "GiB"))
		amount *= MIB_PER_GIB;
	else if (strcasecmp(unit, "M") && strcasecmp(unit, "MB") && strcasecmp(unit, "MiB"))
		return -EINVAL;
	if (amount < 1 || amount > MOST_MIB)
		return -EINVAL;
	mib = (long)amount;
	if (mib % MIB_PER_GIB)
		snprintf(ret_value, LIMIT_VALUE, "%ldM", mib);
	else
		snprintf(ret_value, LIMIT_VALUE, "%ldG", mib / MIB_PER_GIB);
	return 0;
}

int limit_parse_threads(const char *text, unsigned *ret_percent)
{
	char *end;
	unsigned long percent = strtoul(text, &end, 10);

	if (end == text || *text == '-' || percent < 1 || percent > 100)
		return -EINVAL;
	if (*end && strcmp(end, "%") != 0)
		return -EINVAL;
	*ret_percent = (unsigned)percent;
	return 0;
}

/* The daemon's exit status is 0 whatever it thinks of a command; for a percentage that it does not
 * like it answers with the one that stays. */
static int apply_threads(const struct control *control, const json_t *threads, pid_t server,
	struct control_reply *ret_reply)
{
	int percent = (int)json_integer_value(threads);
	int rc =
		control_ask(control, ret_reply, "set_default_active_thread_percentage %d", percent);

	if (!rc && server && (int)strtod(ret_reply->text, NULL) == percent)
		rc = control_ask(control, ret_reply, "set_active_thread_percentage %d %d",
			(int)server, percent);
	return rc ? rc : (int)strtod(ret_reply->text, NULL) == percent ? 0 : -EPROTO;
}

/* Setting a limit says nothing, so it is asked for afterwards. */
static int apply_memory(const struct control *control, const char *device, const char *value,
	pid_t server, struct control_reply *ret_reply)
{
	bool is_none = !strcmp(value, LIMIT_NONE);
	int rc = control_ask(
		control, ret_reply, "set_default_device_pinned_mem_limit %s %s", device, value);

	if (!rc && server)
		rc = control_ask(control, ret_reply, "set_device_pinned_mem_limit %d %s %s",
			(int)server, device, value);
	if (!rc)
		rc = control_ask(
			control, ret_reply, "get_default_device_pinned_mem_limit %s", device);
	return rc ? rc : is_none == !*ret_reply->text ? 0 : -EPROTO;
}

int limit_apply(const struct control *control, const json_t *limits, pid_t server,
	struct control_reply *ret_reply)
{
	const json_t *threads = json_object_get(limits, "threads");
	json_t *memory = json_object_get(limits, "memory"), *value;
	const char *device;
	int rc = 0;

	if (json_is_integer(threads))
		rc = apply_threads(control, threads, server, ret_reply);
	json_object_foreach(memory, device, value)
	{
		if (!rc && json_is_string(value))
			rc = apply_memory(
				control, device, json_string_value(value), server, ret_reply);
	}
	return rc;
}
