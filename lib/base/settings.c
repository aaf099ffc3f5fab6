/* Parsing of settings. Runs in every process of Hearth, once, at its start. */
#include "base/settings.h"

#include "base/env.h"

#include <string.h>

static const char *const level_names[] = {"none", "error", "info", "debug"};
static const char *const speculate_names[] = {"auto", "always", "off"};
static const char *const prefetch_names[] = {"auto", "off"};
static const char *const spare_names[] = {"off", "auto"};
static const char *const context_names[] = {"adopt", "primary", "native"};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* The index of the variable's value among the names; 0, the default, where it is unset or wrong. */
static int read_name(enum env_id id, const char *const *names, size_t count, const char **ret_wrong)
{
	const char *value = env_get(id);

	if (!value)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(value, names[i]))
			return (int)i;
	if (!*ret_wrong)
		*ret_wrong = env_info(id)->name;
	return 0;
}

/* A decimal number up to max, and nothing else. */
static bool read_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!*text)
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		number = number * 10 + (uint64_t)(*text - '0');
		if (number > max)
			return false;
	}
	if (*text)
		return false;
	*ret_number = number;
	return true;
}

/* HEARTH_SPECULATE: a name, or "always:PID", which `hearth run --eager` sets: it holds for the
 * process that it execs, whose pid stays, and counts as "auto" in all others. "spare:PID" likewise,
 * for a spare's python. */
static void read_speculate(struct settings *settings, const char **ret_wrong)
{
	static const char always[] = "always:", spare[] = "spare:";
	const char *value = env_get(ENV_HEARTH_SPECULATE), *number = NULL;
	uint64_t pid;

	if (value && !strncmp(value, always, strlen(always)))
		number = value + strlen(always);
	else if (value && !strncmp(value, spare, strlen(spare)))
		number = value + strlen(spare);
	if (number && read_number(number, INT32_MAX, &pid)) {
		settings->speculate = SPECULATE_ALWAYS;
		settings->speculate_pid = (int)pid;
		settings->is_spare = value[0] == spare[0];
		return;
	}
	settings->speculate = (enum speculate_mode)read_name(
		ENV_HEARTH_SPECULATE, speculate_names, COUNT(speculate_names), ret_wrong);
}

static void read_unsigned(enum env_id id, uint64_t max, unsigned *number, const char **ret_wrong)
{
	const char *value = env_get(id);
	uint64_t read;

	if (value && read_number(value, max, &read))
		*number = (unsigned)read;
	else if (value && !*ret_wrong)
		*ret_wrong = env_info(id)->name;
}

static void read_spares(struct settings *settings, const char **ret_wrong)
{
	settings->are_spares_kept =
		read_name(ENV_HEARTH_SPARE, spare_names, COUNT(spare_names), ret_wrong) != 0;
	read_unsigned(ENV_HEARTH_SPARE_MIB, SPARE_MIB_MAX, &settings->spare_host_mib, ret_wrong);
	read_unsigned(ENV_HEARTH_SPARE_GPU_MIB, SPARE_MIB_MAX, &settings->spare_gpu_mib, ret_wrong);
	read_unsigned(ENV_HEARTH_SPARE_IDLE, SPARE_IDLE_MAX_S, &settings->spare_idle_s, ret_wrong);
}

const char *settings_read(struct settings *ret_settings)
{
	struct settings settings = SETTINGS_DEFAULT;
	const char *wrong = NULL, *value = env_get(ENV_HEARTH);
	uint64_t seconds, mib;

	settings.driver = env_get(ENV_HEARTH_DRIVER);
	settings.socket = env_get(ENV_HEARTH_SOCKET);
	settings.log = env_get(ENV_HEARTH_LOG);
	settings.task = env_get(ENV_HEARTH_TASK);
	if (value && !strcmp(value, "0"))
		settings.is_on = false;
	else if (value && strcmp(value, "1"))
		wrong = env_info(ENV_HEARTH)->name;
	settings.log_level = (enum log_level)read_name(
		ENV_HEARTH_LOG_LEVEL, level_names, COUNT(level_names), &wrong);
	read_speculate(&settings, &wrong);
	settings.contexts = (enum context_mode)read_name(
		ENV_HEARTH_CTX, context_names, COUNT(context_names), &wrong);
	value = env_get(ENV_HEARTH_STATE_DIR);
	if (value && value[0] == '/')
		settings.state_dir = value;
	else if (value && !wrong)
		wrong = env_info(ENV_HEARTH_STATE_DIR)->name;
	value = env_get(ENV_HEARTH_GIVE_BACK);
	if (value && read_number(value, GIVE_BACK_MAX_S, &seconds) && seconds)
		settings.give_back_us = seconds * 1000000;
	else if (value && !wrong)
		wrong = env_info(ENV_HEARTH_GIVE_BACK)->name;
	settings.prefetch = (enum prefetch_mode)read_name(
		ENV_HEARTH_PREFETCH, prefetch_names, COUNT(prefetch_names), &wrong);
	value = env_get(ENV_HEARTH_PREFETCH_MIB);
	if (value && read_number(value, PREFETCH_MAX_MIB, &mib))
		settings.prefetch_bytes = mib << 20;
	else if (value && !wrong)
		wrong = env_info(ENV_HEARTH_PREFETCH_MIB)->name;
	read_spares(&settings, &wrong);
	*ret_settings = settings;
	return wrong;
}
