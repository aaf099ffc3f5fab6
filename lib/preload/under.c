/* Noting conditions. Runs in the user's program, inside its own calls; allocates nothing. */
#include "preload/under.h"

#include "base/env.h"
#include "base/jit_cache.h"
#include "preload/first_call.h"
#include "profile/decide.h"
#include "region/conditions.h"

#include <errno.h>
#include <unistd.h>

static int ask_access(const void *context, const char *path, int mode)
{
	(void)context;
	return access(path, mode) ? -errno : 0;
}

void under_note(void)
{
	struct hearth_page *page = first_call_page();
	int rank = decide_rank_of_environment();
	const struct conditions conditions = {
		.rank = rank >= 0 ? rank : CONDITIONS_NO_RANK,
		.visible = conditions_visible(env_get(ENV_CUDA_VISIBLE_DEVICES)),
		.connections = conditions_connections(env_get(ENV_CUDA_DEVICE_MAX_CONNECTIONS)),
		.is_eager = conditions_is_eager(env_get(ENV_CUDA_MODULE_LOADING)),
	};

	if (page)
		conditions_put(page, &conditions);
}

void under_compiled(void)
{
	struct hearth_page *page = first_call_page();
	const struct jit_cache_view view = {
		.disabled = env_get(ENV_CUDA_CACHE_DISABLE),
		.path = env_get(ENV_CUDA_CACHE_PATH),
		.home = env_get(ENV_HOME),
		.access = ask_access,
	};
	struct jit_cache_place place;
	int kept = errno;

	if (page && !__atomic_load_n(&page->jit_cache, __ATOMIC_RELAXED))
		conditions_put_cache(page, jit_cache_look(&view, &place));
	errno = kept;
}
