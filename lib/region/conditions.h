/* Under which conditions a program came to CUDA, as it wrote them into its page: what a report
 * warns about. Everything in a page is hostile. */
#pragma once

#include "base/jit_cache.h"
#include "base/json_out.h"
#include "hearth/region.h"

#include <stdbool.h>
#include <stdint.h>

#define CONDITIONS_NO_RANK (-1)

struct conditions {
	int rank;             /* the launcher's on this host, or CONDITIONS_NO_RANK */
	uint32_t visible;     /* digest of CUDA_VISIBLE_DEVICES; 0 where it was unset */
	uint32_t connections; /* CUDA_DEVICE_MAX_CONNECTIONS; 0 where it was none */
	bool is_eager;        /* CUDA_MODULE_LOADING */
	enum jit_cache cache; /* looked at where the program has waited for the JIT compiler */
};

/* What the driver reads: whether CUDA_MODULE_LOADING's value is EAGER, the number in
 * CUDA_DEVICE_MAX_CONNECTIONS' (0 where there is none); and a digest that is the same for the same
 * devices. A value is NULL where the variable is unset. */
bool conditions_is_eager(const char *loading);
uint32_t conditions_connections(const char *value);
uint32_t conditions_visible(const char *value);

/* All but the cache, which is looked at later. */
void conditions_put(struct hearth_page *page, const struct conditions *conditions);
void conditions_put_cache(struct hearth_page *page, enum jit_cache cache);

/* What is out of bounds counts as not there. */
void conditions_get(const struct hearth_page *page, struct conditions *ret_conditions);

/* "conditions":{"rank":...,"visible":...,"connections":...,"eager":...,"jit_cache":...}; null where
 * there is none. */
void conditions_print(struct json_out *out, const struct conditions *conditions);

/* "good", "off", "nowhere", "locked"; NULL for JIT_CACHE_UNKNOWN. */
const char *conditions_cache_name(enum jit_cache cache);
