/* The client's side of MPS, in the hearth tool, before it execs the program. */
#include "mps/attach.h"

#include "base/env.h"
#include "base/no_mps.h"
#include "base/settings.h"
#include "broker/machine.h"
#include "launch/keeper_status.h"
#include "mps/judge.h"
#include "mps/limit.h"
#include "mps/state.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BROKER_LIMIT_US 300000
#define MOST_DEVICES 64
#define VISIBLE_SIZE 4096

static bool is_listed(const struct place *place)
{
	json_t *users = state_read(place, STATE_USERS), *user;
	const json_t *list = json_object_get(users, "uids");
	bool is_in = !geteuid();
	size_t i;

	json_array_foreach(list, i, user)
	{
		is_in |= json_integer_value(user) == (json_int_t)geteuid();
	}
	json_decref(users);
	return is_in;
}

/* The folder, or why there is none. */
static int find_folder(char ret_folder[PATH_MAX], char ret_why[ATTACH_WHY])
{
	const char *told = env_get(ENV_CUDA_MPS_PIPE_DIRECTORY);
	struct place place;
	pid_t supervisor;

	if (told && *told) {
		snprintf(ret_folder, PATH_MAX, "%s", told);
		return 0;
	}
	if (place_serving(&place, &supervisor)) {
		snprintf(ret_why, ATTACH_WHY,
			"no daemon of Hearth's runs, and CUDA_MPS_PIPE_DIRECTORY names none: "
			"hearth "
			"mps start");
		return ATTACH_PLAIN;
	}
	if (place.is_machine && !is_listed(&place)) {
		snprintf(ret_why, ATTACH_WHY,
			"uid %u is none of those that the machine's daemon is for: hearth mps "
			"start "
			"for one of one's own, or, as root, hearth mps start --system --users",
			(unsigned)geteuid());
		return ATTACH_PLAIN;
	}
	snprintf(ret_folder, PATH_MAX, "%s", place.pipe);
	return 0;
}

/* The limit is a device's: it is set for each that there is. */
static int set_memory(const char *wish, char ret_why[ATTACH_WHY])
{
	int count = machine_gpu_count(MACHINE_GPU_FOLDER), length = 0;
	char value[LIMIT_VALUE], list[MOST_DEVICES * (LIMIT_VALUE + 4)];

	if (limit_parse_memory(wish, value) || !strcmp(value, LIMIT_NONE)) {
		snprintf(ret_why, ATTACH_WHY, "--mem: '%.100s' is no amount such as 2GiB or 512MiB",
			wish);
		return -EINVAL;
	}
	count = count < 1 ? 1 : count > MOST_DEVICES ? MOST_DEVICES : count;
	for (int i = 0; i < count; i++)
		length += snprintf(list + length, sizeof(list) - (size_t)length, "%s%d=%s",
			i ? "," : "", i, value);
	return setenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", list, 1) ? -ENOMEM : 0;
}

static int set_threads(const char *wish, char ret_why[ATTACH_WHY])
{
	unsigned percent;
	char text[16];

	if (limit_parse_threads(wish, &percent)) {
		snprintf(ret_why, ATTACH_WHY, "--threads: '%.100s' is not from 1%% to 100%%", wish);
		return -EINVAL;
	}
	snprintf(text, sizeof(text), "%u", percent);
	return setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", text, 1) ? -ENOMEM : 0;
}

static int set_priority(const char *wish, char ret_why[ATTACH_WHY])
{
	bool is_low = !strcmp(wish, "low");

	if (!is_low && strcmp(wish, "normal") != 0) {
		snprintf(ret_why, ATTACH_WHY, "--priority: '%.100s' is neither low nor normal",
			wish);
		return -EINVAL;
	}
	return setenv("CUDA_MPS_CLIENT_PRIORITY", is_low ? "1" : "0", 1) ? -ENOMEM : 0;
}

/* The UUID of the device with this ordinal, as the keeper sees them: all there are. */
static const char *uuid_of(const json_t *devices, long ordinal)
{
	const json_t *device;
	size_t i;

	json_array_foreach(devices, i, device)
	{
		if (json_integer_value(json_object_get(device, "ordinal")) == ordinal)
			return json_string_value(json_object_get(device, "uuid"));
	}
	return NULL;
}

/* "0,2" as UUIDs: false where it is not all numbers of devices that are there. */
static bool translate(const char *visible, const json_t *devices, char ret_list[VISIBLE_SIZE])
{
	size_t length = 0;

	for (const char *at = visible;; at++) {
		char *end;
		long ordinal = strtol(at, &end, 10);
		const char *uuid = isdigit((unsigned char)*at) ? uuid_of(devices, ordinal) : NULL;
		int more;

		if (!uuid || (*end && *end != ','))
			return false;
		more = snprintf(
			ret_list + length, VISIBLE_SIZE - length, "%s%s", length ? "," : "", uuid);
		if (more < 0 || (size_t)more >= VISIBLE_SIZE - length)
			return false;
		length += (size_t)more;
		at = end;
		if (!*end)
			return true;
	}
}

/* A daemon that was given some of the GPUs numbers them anew; a UUID means the same everywhere. */
static int name_devices(void)
{
	const char *visible = env_get(ENV_CUDA_VISIBLE_DEVICES);
	char list[VISIBLE_SIZE];
	struct settings settings;
	struct ask_reply reply;
	json_t *status;
	int rc = 0;

	if (!visible || !isdigit((unsigned char)*visible))
		return 0;
	settings_read(&settings);
	if (keeper_status_ask_within(&settings, BROKER_LIMIT_US, &reply, &status))
		return 0;
	if (translate(visible, json_object_get(status, "devices"), list) &&
		setenv("CUDA_VISIBLE_DEVICES", list, 1))
		rc = -ENOMEM;
	json_decref(status);
	return rc;
}

static int set_wishes(const struct attach_wish *wish, char ret_why[ATTACH_WHY])
{
	int rc = 0;

	if (wish->memory)
		rc = set_memory(wish->memory, ret_why);
	if (!rc && wish->threads)
		rc = set_threads(wish->threads, ret_why);
	if (!rc && wish->priority)
		rc = set_priority(wish->priority, ret_why);
	return rc;
}

int attach_prepare(const struct attach_wish *wish, char ret_why[ATTACH_WHY])
{
	struct judgement judgement;
	char folder[PATH_MAX];
	int rc = set_wishes(wish, ret_why);

	if (rc)
		return rc;
	rc = find_folder(folder, ret_why);
	if (!rc) {
		judge_folder(folder, true, &judgement);
		if (!judgement.is_client) {
			snprintf(ret_why, ATTACH_WHY, "%s: %s", judgement.text, judgement.remedy);
			rc = ATTACH_PLAIN;
		}
	}
	if (rc)
		return setenv("CUDA_MPS_PIPE_DIRECTORY", NO_MPS_FOLDER, 1) ? -ENOMEM : rc;
	if (setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1))
		return -ENOMEM;
	return name_devices();
}
