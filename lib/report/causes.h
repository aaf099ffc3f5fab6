/* What makes CUDA start slowly and need not: the words for it, the same in `hearth doctor`, which
 * sees it in the environment, and in `hearth report`, which has it from a run. Each adds one
 * warning with its remedy, or none where nothing is wrong. */
#pragma once

#include "base/jit_cache.h"
#include "report/findings.h"

#include <stdbool.h>
#include <stdint.h>

/* "eager-loading" */
void causes_add_loading(struct findings *findings, bool is_eager);

/* "connections"; 0 where none are named. */
void causes_add_connections(struct findings *findings, uint32_t connections);

/* "jit-cache"; `place` may be NULL: then it is not named. */
void causes_add_cache(
	struct findings *findings, enum jit_cache cache, const struct jit_cache_place *place);
