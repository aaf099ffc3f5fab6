/* The environment variables that Hearth reads (env.def), and the only place that reads them.
 * Values point into the environment: a caller that keeps one copies it. */
#pragma once

#include <stdbool.h>

enum env_id {
#define SETTING(name, values, default_text, help) ENV_##name,
#define OTHER(name, help) ENV_##name,
#include "base/env.def"
#undef SETTING
#undef OTHER
	ENV_COUNT
};

struct env_info {
	const char *name;
	const char *values;       /* NULL for a variable that is not Hearth's own */
	const char *default_text; /* NULL likewise */
	const char *help;
};

/* The variable's value, or NULL where it is unset or empty. */
const char *env_get(enum env_id id);

/* The same by the name of a row. NULL also for a name that is in no row. */
const char *env_get_named(const char *name);

/* From now on env_get reads these entries (NULL-terminated; they must stay) instead of the live
 * environment, which another thread may be changing: env_copy.h. */
void env_use(char *const *entries);

/* What the driver's own getenv(name) returns: any name, empty values included. Only for the imports
 * of a driver copy that stand redirected, and for comparing what such reads saw. */
char *env_get_for_driver(const char *name);

/* Whether an environment sets any variable of Hearth's own. Calls nothing: it is for the
 * constructor, in whose first microseconds every page of libc that is touched costs one. */
bool env_has_own(char *const *environment);

/* The table's row, for help texts. */
const struct env_info *env_info(enum env_id id);
