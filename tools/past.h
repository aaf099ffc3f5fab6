/* The runs and profiles that were kept: the user's own, and the machine's part of them. */
#pragma once

#include "base/settings.h"
#include "report/profiles.h"
#include "report/run.h"

#include <limits.h>

/* Where a broker of the machine keeps the runs of each user, by uid. */
#define PAST_SYSTEM "/var/lib/hearth"
#define PAST_HISTORY "runs.jsonl"

struct past {
	char own[PATH_MAX];    /* the history; "" where there is no state folder */
	char system[PATH_MAX]; /* the machine's */
	int own_rc, system_rc; /* 0 where it was read, else why not: -errno */
};

/* Adds the runs of both histories. */
void past_load(const struct settings *settings, struct run_log *log, struct past *ret_past);

/* What was learned, where that can be read; else nothing. To be released by profiles_done. */
void past_load_profiles(const struct settings *settings, struct profiles *ret_profiles);
