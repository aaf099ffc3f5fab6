/* Slots: resolving, opening the driver, stubs for pointers. Runs in the user's program on whatever
 * thread calls first, perhaps several at once, perhaps under the loader's lock, perhaps before our
 * constructor; must never hold a lock, never print, and keep errno. */
#include "preload/route.h"

#include "base/log.h"
#include "driver/loaded.h"
#include "driver/loader.h"
#include "driver/locate.h"
#include "preload/around.h"
#include "preload/claim.h"
#include "preload/gate.h"
#include "preload/hide.h"
#include "preload/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uintptr_t route_reals[DRIVER_ROWS];
static uintptr_t generic_reals[DRIVER_GENERIC_STUBS];
static bool generic_is_open[DRIVER_GENERIC_STUBS]; /* under a closed gate, too */

static char *driver_path;           /* published once, then never changed */
static struct link_map *driver_map; /* published once opened */
static bool is_opening;             /* some thread has begun to open it here */
static int open_error;              /* the driver cannot be opened: stays so */

/* What the program gets from an entry that the driver at hand does not have. */
static CUresult missing_entry(void)
{
	return CUDA_ERROR_NOT_FOUND;
}

/* What the program gets where there is no driver at all: what a stub library answers. */
static CUresult no_driver(void)
{
	return CUDA_ERROR_STUB_LIBRARY;
}

const char *route_driver_path(void)
{
	return __atomic_load_n(&driver_path, __ATOMIC_ACQUIRE);
}

const struct link_map *route_driver_map(void)
{
	return __atomic_load_n(&driver_map, __ATOMIC_ACQUIRE);
}

bool route_has(enum driver_row row)
{
	uintptr_t real = route_real(row);

	return real && real != (uintptr_t)missing_entry;
}

/* Threads that race here may find different files (their callers differ): the first to publish
 * decides for all. */
static const char *choose_path(const void *caller)
{
	struct locate_request request = {.driver = start_settings()->driver, .caller = caller};
	const char *chosen = route_driver_path();
	char found[PATH_MAX], *copy, *none = NULL;

	if (chosen)
		return chosen;
	if (locate_driver(&request, found))
		return NULL;
	copy = strdup(found);
	if (!copy)
		return NULL;
	if (__atomic_compare_exchange_n(
		    &driver_path, &none, copy, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return copy;
	free(copy);
	return none;
}

/* A driver that is a mere front has its entries in what it NEEDs: then only dlsym finds them. */
static uintptr_t find_entry(
	const struct link_map *map, const struct loaded *object, bool is_front, const char *symbol)
{
	if (is_front)
		return (uintptr_t)loader_symbol((void *)(uintptr_t)map, symbol);
	return (uintptr_t)loaded_symbol(object, symbol);
}

static uintptr_t target_of(enum driver_row row)
{
	uintptr_t handler = route_has(row) && !start_is_off() ? stubs_handler(row) : 0;

	/* The runtime takes 34 from these for "no such entry", and then uses dlsym. */
	if (!route_has(row) && (row == ROW_cuGetProcAddress || row == ROW_cuGetProcAddress_v2))
		return (uintptr_t)no_driver;
	if (gate_is_closed() && route_has(row))
		return gate_target(row, handler);
	return handler ? handler : route_real(row);
}

static void refresh_generic(size_t index)
{
	uintptr_t real = __atomic_load_n(&generic_reals[index], __ATOMIC_ACQUIRE);

	if (real && gate_is_closed())
		real = __atomic_load_n(&generic_is_open[index], __ATOMIC_ACQUIRE)
			       ? (uintptr_t)driver_stub_resolve
			       : gate_target_unknown();
	__atomic_store_n(&driver_generic_slots[index], real, __ATOMIC_RELEASE);
}

void route_refresh(void)
{
	if (!route_driver_map())
		return;
	for (unsigned int row = 0; row < DRIVER_ROWS; row++)
		__atomic_store_n(&driver_slots[row], target_of(row), __ATOMIC_RELEASE);
	for (size_t i = 0; i < DRIVER_GENERIC_STUBS; i++)
		refresh_generic(i);
}

void route_retarget(struct link_map *fresh)
{
	uintptr_t old = route_driver_map()->l_addr;

	for (unsigned int row = 0; row < DRIVER_ROWS; row++)
		if (route_has(row))
			__atomic_store_n(&route_reals[row], route_real(row) - old + fresh->l_addr,
				__ATOMIC_RELAXED);
	for (size_t i = 0; i < DRIVER_GENERIC_STUBS; i++) {
		uintptr_t there = __atomic_load_n(&generic_reals[i], __ATOMIC_ACQUIRE);

		if (there)
			__atomic_store_n(
				&generic_reals[i], there - old + fresh->l_addr, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&driver_map, fresh, __ATOMIC_RELEASE);
	route_refresh();
}

/* May run on several threads at once: what is there already stays, since it may be another copy's
 * by now. */
static int fill(struct link_map *map)
{
	struct loaded object;
	uintptr_t reals[DRIVER_ROWS];
	size_t missing = 0;
	bool is_front;

	if (loaded_from_map(map, &object))
		return -ELIBACC;
	is_front = !loaded_symbol(&object, "cuInit");
	for (unsigned int row = 0; row < DRIVER_ROWS; row++) {
		reals[row] = find_entry(map, &object, is_front, tables_symbol(row));
		missing += !reals[row];
	}
	if (missing)
		hide_missing(reals);
	for (unsigned int row = 0; row < DRIVER_ROWS; row++) {
		uintptr_t real = reals[row] ? reals[row] : (uintptr_t)missing_entry, empty = 0;

		__atomic_compare_exchange_n(
			&route_reals[row], &empty, real, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
	for (unsigned int row = 0; row < DRIVER_ROWS; row++) {
		uintptr_t empty = 0;

		__atomic_compare_exchange_n(&driver_slots[row], &empty, target_of(row), false,
			__ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
	log_debug("driver %s: %zu of %d entries", route_driver_path(), DRIVER_ROWS - missing,
		DRIVER_ROWS);
	return 0;
}

static int open_driver(const void *caller)
{
	const char *path = choose_path(caller);
	struct link_map *map, *none = NULL;
	int rc;

	if (!path) {
		log_error("no " LOCATE_NAME " found");
		return -ENOENT;
	}
	__atomic_store_n(&is_opening, true, __ATOMIC_SEQ_CST);
	map = loader_open(path, RTLD_NOW | RTLD_LOCAL);
	if (!map) {
		log_error("%s: the loader refuses it", path);
		return -ELIBACC;
	}
	rc = fill(map);
	if (!rc)
		__atomic_compare_exchange_n(
			&driver_map, &none, map, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	return rc;
}

bool route_locate(const void *caller)
{
	return choose_path(caller);
}

bool route_is_open_elsewhere(void)
{
	const char *path = route_driver_path();
	void *handle = path ? loader_open(path, RTLD_NOW | RTLD_NOLOAD) : NULL;

	if (handle)
		loader_close(handle);
	return handle && !__atomic_load_n(&is_opening, __ATOMIC_SEQ_CST);
}

int route_open(const void *caller)
{
	int kept = errno, rc;

	if (route_driver_map())
		return 0;
	rc = __atomic_load_n(&open_error, __ATOMIC_ACQUIRE);
	if (rc)
		return rc;
	rc = open_driver(caller);
	/* What failed on the speculative thread, which has no caller, may succeed for the program:
	 * that may have closed the loader's own descriptor meanwhile. */
	if (rc && caller)
		__atomic_store_n(&open_error, rc, __ATOMIC_RELEASE);
	errno = kept;
	return rc;
}

/* Under a closed gate: the driver that is ready ahead, but in a fork child. */
static uintptr_t resolve_generic(size_t index)
{
	around_child();
	claim_child();
	return __atomic_load_n(&generic_reals[index], __ATOMIC_ACQUIRE);
}

uintptr_t route_resolve(unsigned int number, const void *caller)
{
	uintptr_t target;

	if (number >= DRIVER_ROWS)
		return resolve_generic(number - DRIVER_ROWS);
	if (route_open(caller))
		return (uintptr_t)no_driver;
	target = __atomic_load_n(&driver_slots[number], __ATOMIC_ACQUIRE);
	if (!target && gate_is_closed())
		target = gate_resolve((enum driver_row)number);
	return target ? target : (uintptr_t)no_driver;
}

void route_straight(enum driver_row row)
{
	__atomic_store_n(&driver_slots[row], route_real(row), __ATOMIC_RELEASE);
}

void route_handled(enum driver_row row)
{
	uintptr_t handler = stubs_handler(row);

	if (handler && route_has(row) && !start_is_off())
		__atomic_store_n(&driver_slots[row], handler, __ATOMIC_RELEASE);
}

/* NULL where they have run out. */
static void *generic_stub(uintptr_t pointer, bool is_open)
{
	for (size_t i = 0; i < DRIVER_GENERIC_STUBS; i++) {
		uintptr_t there = 0;

		if (__atomic_compare_exchange_n(&generic_reals[i], &there, pointer, false,
			    __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
			there == pointer) {
			if (is_open)
				__atomic_store_n(&generic_is_open[i], true, __ATOMIC_RELEASE);
			refresh_generic(i);
			return (void *)stubs_generic(i);
		}
	}
	return NULL;
}

void *route_stub_open(void *pointer)
{
	return generic_stub((uintptr_t)pointer, true);
}

void *route_stub_for(const char *name, int version, uint64_t flags, void *pointer)
{
	enum driver_row row = tables_find_request(name, version, flags);
	const uint16_t *rows;
	void *stub;
	size_t count;

	if (row != DRIVER_ROWS && route_real(row) == (uintptr_t)pointer)
		return (void *)stubs_address(row);
	count = tables_find_public(name, &rows);
	for (size_t i = 0; i < count; i++)
		if (route_real((enum driver_row)rows[i]) == (uintptr_t)pointer)
			return (void *)stubs_address((enum driver_row)rows[i]);
	stub = generic_stub((uintptr_t)pointer, false);
	return stub ? stub : pointer;
}
