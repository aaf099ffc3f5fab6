/* The table of environment variables. Runs in every process of Hearth; in the user's process only
 * from the constructor and from calls that the driver itself would read the environment in. */
#include "base/env.h"

#include "base/at_start.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct env_info table[ENV_COUNT] = {
#define SETTING(name, values, default_text, help) {#name, values, default_text, help},
#define OTHER(name, help) {#name, NULL, NULL, help},
#include "base/env.def"
#undef SETTING
#undef OTHER
};

const char *env_get(enum env_id id)
{
	const char *value = getenv(table[id].name);

	return value && *value ? value : NULL;
}

const char *env_get_named(const char *name)
{
	for (int id = 0; id < ENV_COUNT; id++)
		if (!strcmp(table[id].name, name))
			return env_get((enum env_id)id);
	return NULL;
}

char *env_get_for_driver(const char *name)
{
	return getenv(name);
}

AT_START bool env_has_own(char *const *environment)
{
	static const char prefix[] = "HEARTH";

	for (; environment && *environment; environment++) {
		size_t i = 0;

		while (prefix[i] && (*environment)[i] == prefix[i])
			i++;
		if (!prefix[i])
			return true;
	}
	return false;
}

const struct env_info *env_info(enum env_id id)
{
	return &table[id];
}
