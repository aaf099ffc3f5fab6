/* Looking at the driver's JIT cache. Runs in the user's program, once it has waited for a compiler,
 * and in the tools; only asks. */
#include "base/jit_cache.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void go_up(const struct jit_cache_view *view, char *folder)
{
	while (view->access(view->context, folder, F_OK)) {
		char *slash = strrchr(folder, '/');

		if (!slash || slash == folder) {
			strcpy(folder, "/");
			return;
		}
		*slash = '\0';
	}
}

enum jit_cache jit_cache_look(const struct jit_cache_view *view, struct jit_cache_place *ret_place)
{
	const char *base = view->path ? view->path : view->home;

	if (view->disabled && strcmp(view->disabled, "0"))
		return JIT_CACHE_OFF;
	if (!base)
		return JIT_CACHE_NOWHERE;
	snprintf(ret_place->path, PATH_MAX, "%s%s", base, view->path ? "" : "/.nv/ComputeCache");
	memcpy(ret_place->folder, ret_place->path, PATH_MAX);
	go_up(view, ret_place->folder);
	ret_place->error = view->access(view->context, ret_place->folder, W_OK | X_OK);
	return ret_place->error ? JIT_CACHE_LOCKED : JIT_CACHE_GOOD;
}
