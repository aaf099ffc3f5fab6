/* The gate. Runs in the user's program on any thread; gate_close also on the speculative one. Must
 * not call an initialised driver on the program's behalf before the program's own cuInit. */
#include "preload/gate.h"

#include "base/log.h"
#include "driver/copy.h"
#include "driver/loaded.h"

#include <errno.h>
#include <string.h>

static bool is_closed;
static struct link_map *pristine; /* published once opened */

/* What most entries say before cuInit. */
static CUresult not_initialized(void)
{
	return CUDA_ERROR_NOT_INITIALIZED;
}

bool gate_is_closed(void)
{
	return __atomic_load_n(&is_closed, __ATOMIC_ACQUIRE);
}

void gate_close(void)
{
	__atomic_store_n(&is_closed, true, __ATOMIC_SEQ_CST);
	route_refresh();
}

void gate_open(void)
{
	__atomic_store_n(&is_closed, false, __ATOMIC_SEQ_CST);
	route_refresh();
}

uintptr_t gate_target(enum driver_row row, uintptr_t handler)
{
	switch (row) {
	case ROW_cuInit:
	case ROW_cuGetProcAddress:
	case ROW_cuGetProcAddress_v2:
	case ROW_cuGetExportTable:
		return handler;
	case ROW_cuDriverGetVersion:
	case ROW_cuGetErrorName:
	case ROW_cuGetErrorString:
		return route_real(row);
	default:
		return driver_before_init[row] == CUDA_ERROR_NOT_INITIALIZED
			       ? (uintptr_t)not_initialized
			       : 0;
	}
}

uintptr_t gate_target_unknown(void)
{
	return (uintptr_t)not_initialized;
}

struct link_map *gate_pristine(void)
{
	struct link_map *there = __atomic_load_n(&pristine, __ATOMIC_ACQUIRE), *none = NULL;
	const char *path = route_driver_path();
	struct driver_copy copy;
	int kept = errno, error;

	if (there || !path)
		return there;
	error = copy_open_fresh(path, &copy);
	if (error) {
		log_error("%s: no fresh copy: %s", path, strerror(-error));
		errno = kept;
		return NULL;
	}
	errno = kept;
	/* Of threads that race here one copy is used; the other stays mapped and idle. */
	if (__atomic_compare_exchange_n(
		    &pristine, &none, copy.map, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return copy.map;
	return none;
}

void gate_forget_pristine(void)
{
	__atomic_store_n(&pristine, NULL, __ATOMIC_RELEASE);
}

uintptr_t gate_resolve(enum driver_row row)
{
	struct link_map *map = gate_pristine();

	if (!map || !route_driver_map())
		return 0;
	return route_real(row) - route_driver_map()->l_addr + map->l_addr;
}
