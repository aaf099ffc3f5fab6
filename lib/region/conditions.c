/* Conditions in a page, and as JSON. The writing half runs in the user's program, at its first
 * cuInit; the reading half in the broker and the tools. */
#include "region/conditions.h"

#include "base/number.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

/* FNV-1a, 32 bits (Fowler, Noll, Vo). */
#define FNV_START 2166136261u
#define FNV_PRIME 16777619u

static const char *const cache_names[JIT_CACHE_COUNT] = {
	[JIT_CACHE_GOOD] = "good",
	[JIT_CACHE_OFF] = "off",
	[JIT_CACHE_NOWHERE] = "nowhere",
	[JIT_CACHE_LOCKED] = "locked",
};

bool conditions_is_eager(const char *loading)
{
	return loading && !strcasecmp(loading, "EAGER");
}

uint32_t conditions_connections(const char *value)
{
	uint64_t count = 0;

	if (value) {
		value += strspn(value, " ");
		count = number_decimal(&value);
	}
	return count <= INT_MAX ? (uint32_t)count : 0;
}

uint32_t conditions_visible(const char *value)
{
	uint32_t digest = FNV_START;

	if (!value)
		return 0;
	for (; *value; value++)
		digest = (digest ^ (unsigned char)*value) * FNV_PRIME;
	return digest ? digest : 1;
}

void conditions_put(struct hearth_page *page, const struct conditions *conditions)
{
	uint32_t rank = conditions->rank < 0 ? 0 : (uint32_t)conditions->rank + 1;

	__atomic_store_n(&page->visible_devices, conditions->visible, __ATOMIC_RELAXED);
	__atomic_store_n(&page->connections, conditions->connections, __ATOMIC_RELAXED);
	if (conditions->is_eager)
		__atomic_fetch_or(&page->flags, HEARTH_PAGE_EAGER, __ATOMIC_RELAXED);
	__atomic_store_n(&page->rank, rank, __ATOMIC_RELAXED);
}

void conditions_put_cache(struct hearth_page *page, enum jit_cache cache)
{
	__atomic_store_n(&page->jit_cache, (uint32_t)cache, __ATOMIC_RELAXED);
}

void conditions_get(const struct hearth_page *page, struct conditions *ret_conditions)
{
	uint32_t rank = __atomic_load_n(&page->rank, __ATOMIC_RELAXED);
	uint32_t cache = __atomic_load_n(&page->jit_cache, __ATOMIC_RELAXED);

	*ret_conditions = (struct conditions){
		.rank = rank && rank <= INT_MAX ? (int)rank - 1 : CONDITIONS_NO_RANK,
		.visible = __atomic_load_n(&page->visible_devices, __ATOMIC_RELAXED),
		.connections = __atomic_load_n(&page->connections, __ATOMIC_RELAXED),
		.is_eager = __atomic_load_n(&page->flags, __ATOMIC_RELAXED) & HEARTH_PAGE_EAGER,
		.cache = cache < JIT_CACHE_COUNT ? (enum jit_cache)cache : JIT_CACHE_UNKNOWN,
	};
}

static void print_count(struct json_out *out, const char *key, uint32_t count)
{
	if (count)
		json_out_u64(out, key, count);
	else
		json_out_null(out, key);
}

void conditions_print(struct json_out *out, const struct conditions *conditions)
{
	const char *cache = conditions_cache_name(conditions->cache);

	json_out_object_begin(out, "conditions");
	if (conditions->rank >= 0)
		json_out_i64(out, "rank", conditions->rank);
	else
		json_out_null(out, "rank");
	print_count(out, "visible", conditions->visible);
	print_count(out, "connections", conditions->connections);
	json_out_bool(out, "eager", conditions->is_eager);
	if (cache)
		json_out_string(out, "jit_cache", cache);
	else
		json_out_null(out, "jit_cache");
	json_out_object_end(out);
}

const char *conditions_cache_name(enum jit_cache cache)
{
	return (unsigned)cache < JIT_CACHE_COUNT ? cache_names[cache] : NULL;
}
