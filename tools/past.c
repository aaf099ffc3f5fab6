/* What was kept. Runs in the hearth tool; only reads. */
#include "past.h"

#include "base/state_dir.h"
#include "report/load.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void past_load(const struct settings *settings, struct run_log *log, struct past *ret_past)
{
	static const char tail[] = "/" PAST_HISTORY;

	ret_past->own_rc = state_dir_path(settings, ret_past->own, PATH_MAX - sizeof(tail));
	if (ret_past->own_rc) {
		ret_past->own[0] = '\0';
	} else {
		strcat(ret_past->own, tail);
		ret_past->own_rc = load_file(ret_past->own, log);
	}
	snprintf(ret_past->system, PATH_MAX, PAST_SYSTEM "/%u/" PAST_HISTORY, (unsigned)getuid());
	ret_past->system_rc = load_file(ret_past->system, log);
}

void past_load_profiles(const struct settings *settings, struct profiles *ret_profiles)
{
	static const char tail[] = "/profiles";
	char folder[PATH_MAX];

	if (state_dir_path(settings, folder, PATH_MAX - sizeof(tail)))
		return;
	strcat(folder, tail);
	profiles_load(folder, false, ret_profiles);
}
