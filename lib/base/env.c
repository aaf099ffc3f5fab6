/* The table of environment variables. Runs in every process of Hearth; in the user's process only
 * from the constructor and from calls that the driver itself would read the environment in. */
#include "base/env.h"

#include "base/at_start.h"
#include "base/env_copy.h"

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

static char *const *source; /* NULL: the live environment */

void env_use(char *const *entries)
{
	__atomic_store_n(&source, entries, __ATOMIC_RELEASE);
}

const char *env_get(enum env_id id)
{
	char *const *entries = __atomic_load_n(&source, __ATOMIC_ACQUIRE);
	const char *value =
		entries ? env_copy_find(entries, table[id].name) : getenv(table[id].name);

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
