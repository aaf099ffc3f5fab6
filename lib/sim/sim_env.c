/* What the driver reads of the environment: through getenv, an ordinary import slot that Hearth can
 * redirect, in cuInit, and CUDA_LAUNCH_BLOCKING at the first retain (seen on driver 580.159.04).
 * A load reads CUDA_BINARY_LOADER_THREAD_COUNT (of which is only known that there is such a
 * variable). Values are copied and kept until the process ends. Runs on the thread in cuInit or in
 * a retain.
 */
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_CONNECTIONS 8
#define MAX_CONNECTIONS 32
#define UUID_MARK "GPU-"
#define UUID_TEXT 41 /* the mark, 36 and NUL */

struct sim_env sim_env;

/* Read in cuInit without any effect here. */
static const char *const also_read[] = {"CUDA_DEVICE_ORDER", "CUDA_MODULE_DATA_LOADING",
	"CUDA_INJECTION64_PATH", "CUDA_CACHE_PATH", "CUDA_CACHE_MAXSIZE", "CUDA_DISABLE_PTX_JIT",
	"CUDA_FORCE_PTX_JIT", "CUDA_SCALE_LAUNCH_QUEUES", "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
	"CUDA_COREDUMP_FILE", "CUDA_DEVICE_WAITS_ON_EXCEPTION", "CUDA_AUTO_BOOST", "HOME"};

static bool is_value(const char *name, const char *value)
{
	const char *text = getenv(name);

	return text && !strcasecmp(text, value);
}

/* Has no effect here: it is read so that what the driver reads can be validated. */
static void read_in_vain(const char *name)
{
	const char *text = getenv(name);

	(void)text;
}

void sim_env_read_init(void)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");

	sim_env.has_visible_devices = text;
	snprintf(sim_env.visible_devices, sizeof(sim_env.visible_devices), "%s", text ? text : "");
	text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	sim_env.connections = text ? atoi(text) : DEFAULT_CONNECTIONS;
	if (sim_env.connections < 1 || sim_env.connections > MAX_CONNECTIONS)
		sim_env.connections = DEFAULT_CONNECTIONS;
	sim_env.is_eager = is_value("CUDA_MODULE_LOADING", "EAGER");
	sim_env.is_cache_off = is_value("CUDA_CACHE_DISABLE", "1");
	for (size_t i = 0; i < sizeof(also_read) / sizeof(also_read[0]); i++)
		read_in_vain(also_read[i]);
}

void sim_env_read_retain(void)
{
	sim_env.is_blocking = is_value("CUDA_LAUNCH_BLOCKING", "1");
}

void sim_env_read_load(void)
{
	read_in_vain("CUDA_BINARY_LOADER_THREAD_COUNT");
}

void sim_device_uuid(int physical, unsigned char ret_uuid[16])
{
	/* Two GPUs share their first 4 bytes with nobody, and their last 8 with all, so that a
	 * prefix of "GPU-" and one digit is ambiguous only by accident. */
	static const unsigned char tail[8] = {0x8d, 0x15, 's', 'i', 'm', 'c', 'u', 'd'};
	uint32_t mixed = ((uint32_t)physical + 1) * 2654435761u;

	for (int i = 0; i < 4; i++)
		ret_uuid[i] = (unsigned char)(mixed >> (24 - 8 * i));
	ret_uuid[4] = (unsigned char)physical;
	ret_uuid[5] = 0x5c;
	ret_uuid[6] = 0x4d;
	ret_uuid[7] = (unsigned char)(mixed >> 13);
	memcpy(ret_uuid + 8, tail, sizeof(tail));
}

static void uuid_text(int physical, char ret_text[UUID_TEXT])
{
	unsigned char uuid[16];
	int length = snprintf(ret_text, UUID_TEXT, UUID_MARK);

	sim_device_uuid(physical, uuid);
	for (int i = 0; i < 16; i++)
		length += snprintf(ret_text + length, (size_t)(UUID_TEXT - length), "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

/* Hexadecimal digits of a UUID are compared without case, up to the end of the shorter text. */
static bool is_prefix(const char *text, size_t length, const char *uuid)
{
	size_t whole = strlen(uuid);

	return !strncasecmp(text, uuid, length < whole ? length : whole);
}

/* The GPU that a UUID or the beginning of one names, or -1 for none or several. What follows a
 * whole UUID is not looked at. */
static int by_uuid(const char *text, size_t length, int present)
{
	char uuid[UUID_TEXT];
	int found = -1;

	if (length <= strlen(UUID_MARK) || strncmp(text, UUID_MARK, strlen(UUID_MARK)))
		return -1;
	for (int i = 0; i < present; i++) {
		uuid_text(i, uuid);
		if (!is_prefix(text, length, uuid))
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* The ordinal that an item begins with, as 32 bits, or -1. What follows is not looked at. */
static int by_ordinal(const char *text, int present)
{
	char *end;
	int ordinal = (int)strtol(text, &end, 10);

	return end == text || ordinal < 0 || ordinal >= present ? -1 : ordinal;
}

int sim_env_visible(int present, int *ret_count, int ret_physical[SIM_MAX_DEVICES])
{
	const char *text = sim_env.visible_devices;
	bool is_by_uuid = !strncmp(text, UUID_MARK, strlen(UUID_MARK));
	int count = 0;

	for (; !sim_env.has_visible_devices && count < present; count++)
		ret_physical[count] = count;
	while (sim_env.has_visible_devices && text && count < SIM_MAX_DEVICES) {
		const char *comma = strchr(text, ',');
		size_t length = comma ? (size_t)(comma - text) : strlen(text);
		int physical =
			is_by_uuid ? by_uuid(text, length, present) : by_ordinal(text, present);

		if (physical < 0)
			break;
		for (int i = 0; i < count; i++)
			if (ret_physical[i] == physical)
				return SIM_INVALID_DEVICE;
		ret_physical[count++] = physical;
		text = comma ? comma + 1 : NULL;
	}
	*ret_count = count;
	return count ? SIM_SUCCESS : SIM_NO_DEVICE;
}
