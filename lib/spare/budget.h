/* What the spares that are kept unasked (HEARTH_SPARE=auto) may take: the user's settings, and the
 * administrator's file, of which the smaller counts. */
#pragma once

#include "base/settings.h"

#include <stdbool.h>
#include <sys/types.h>

#define BUDGET_FILE "/etc/hearth/spares"
#define BUDGET_MEMINFO "/proc/meminfo"
/* What a context with what is loaded ahead into it is counted as, in MiB: 528 were seen on an H200,
 * and HEARTH_PREFETCH_MIB is 256. */
#define BUDGET_CONTEXT_MIB 784

struct budget {
	bool is_allowed;
	unsigned host_mib, gpu_mib, idle_s; /* of all such spares of the user; how long one waits */
};

/* `file`: lines of a name and a value: `auto off`, `host_mib N`, `gpu_mib N`, `idle_s N`; "#"
 * begins a comment. It counts where it is root's and writable by nobody else. 0; or the number of
 * the first line that is not understood, which allows nothing, since it may have been meant to. */
int budget_read(const char *file, const struct settings *settings, struct budget *ret_budget);

/* What a process has for itself, in MiB: its anonymous memory. */
unsigned budget_host_mib(pid_t pid);

/* Is so little memory left on the host that others need it: less than a tenth, by that file of the
 * kernel's? */
bool budget_is_short(const char *meminfo);

/* The spare of `pid`, whose socket is `path`, has come to be ready: ends others that are kept
 * unasked, those first that have waited longest, until all are within the budget. False where this
 * one alone is not. */
bool budget_make_room(
	const struct budget *budget, const char *path, unsigned host_mib, unsigned gpu_mib);
