/* SIMCUDA_EXTRA: entries of a newer driver, that no specification knows. Each logs its call and
 * writes 42 through its first argument. Runs on the program's threads. */
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>

#define EXTRAS 8
#define EXTRA_WORDS 4
#define EXTRA_VALUE 42

static void name_of(int number, char *ret_name, size_t size)
{
	const char *text = sim_setting(SIM_SET_EXTRA);
	size_t length;

	while (text && number--) {
		text = strchr(text, ',');
		if (text)
			text++;
	}
	length = text ? strcspn(text, ":,") : 0;
	if (length >= size)
		length = size - 1;
	memcpy(ret_name, text ? text : "", length);
	ret_name[length] = '\0';
}

static int call(int number, const word *arg)
{
	uint64_t start_us = sim_time_now_us();
	int rc = atomic_load(&sim.state) == SIM_READY ? SIM_SUCCESS : SIM_NOT_INITIALIZED;
	char name[128];

	if (!rc && arg[0])
		*(int *)arg[0] = EXTRA_VALUE;
	if (sim_log_is_on()) {
		name_of(number, name, sizeof(name));
		sim_log_call(name, EXTRA_WORDS, arg, rc, start_us);
	}
	return rc;
}

#define EXTRA(number)                                                                              \
	static int extra_##number(word a0, word a1, word a2, word a3)                              \
	{                                                                                          \
		return call(number, (const word[EXTRA_WORDS]){a0, a1, a2, a3});                    \
	}
EXTRA(0)
EXTRA(1)
EXTRA(2)
EXTRA(3)
EXTRA(4)
EXTRA(5)
EXTRA(6)
EXTRA(7)

static sim_function *const extras[EXTRAS] = {(sim_function *)extra_0, (sim_function *)extra_1,
	(sim_function *)extra_2, (sim_function *)extra_3, (sim_function *)extra_4,
	(sim_function *)extra_5, (sim_function *)extra_6, (sim_function *)extra_7};

sim_function *sim_extra_find(const char *name, int version)
{
	const char *text = sim_setting(SIM_SET_EXTRA);

	for (int i = 0; text && i < EXTRAS; i++) {
		size_t length = strcspn(text, ":,");

		if (strlen(name) == length && !strncmp(text, name, length) &&
			(text[length] != ':' || atoi(text + length + 1) <= version))
			return extras[i];
		text = strchr(text, ',');
		if (text)
			text++;
	}
	return NULL;
}
