/* Parsing of settings. Runs in every process of Hearth, once, at its start. */
#include "base/settings.h"

#include "base/env.h"

#include <string.h>

static const char *const level_names[] = {
	[LOG_NONE] = "none", [LOG_ERROR] = "error", [LOG_INFO] = "info", [LOG_DEBUG] = "debug"};

const char *settings_read(struct settings *ret_settings)
{
	struct settings settings = {
		.is_on = true,
		.driver = env_get(ENV_HEARTH_DRIVER),
		.socket = env_get(ENV_HEARTH_SOCKET),
		.state_dir = env_get(ENV_HEARTH_STATE_DIR),
		.log = env_get(ENV_HEARTH_LOG),
		.task = env_get(ENV_HEARTH_TASK),
	};
	const char *wrong = NULL, *value = env_get(ENV_HEARTH);

	if (value && !strcmp(value, "0"))
		settings.is_on = false;
	else if (value && strcmp(value, "1"))
		wrong = env_info(ENV_HEARTH)->name;
	value = env_get(ENV_HEARTH_LOG_LEVEL);
	if (value) {
		int level = LOG_DEBUG;

		while (level > LOG_NONE && strcmp(value, level_names[level]))
			level--;
		if (!level && strcmp(value, level_names[LOG_NONE]) && !wrong)
			wrong = env_info(ENV_HEARTH_LOG_LEVEL)->name;
		settings.log_level = (enum log_level)level;
	}
	*ret_settings = settings;
	return wrong;
}
