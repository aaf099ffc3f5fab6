/* Lookups in the driver's spec. The arrays are generated from driver_api.tsv; the functions take no
 * lock and allocate nothing. */
#pragma once

#include "driver_rows.h"

#include <stddef.h>
#include <stdint.h>

extern const char driver_names[];
extern const uint16_t driver_symbol_offsets[DRIVER_ROWS];
extern const uint16_t driver_since[DRIVER_ROWS]; /* 1000 x major + 10 x minor */
/* The CUresult on an uninitialised driver, whatever the arguments. */
extern const uint16_t driver_before_init[DRIVER_ROWS];
#define BEFORE_INIT_VARIES 0xffffu /* the entry looks at its arguments first */
extern const uint8_t driver_arity[DRIVER_ROWS];
extern const uint8_t driver_per_thread[DRIVER_ROWS]; /* 1: _ptds or _ptsz */
extern const uint16_t driver_by_symbol[DRIVER_ROWS]; /* rows in the order of their symbols */
extern const uint16_t driver_public_count;
extern const uint16_t driver_public_offsets[]; /* sorted by name */
extern const uint16_t driver_public_first[];   /* into driver_public_rows; one more than names */
extern const uint16_t driver_public_rows[DRIVER_ROWS];

/* The row's ABI symbol, like "cuMemAlloc_v2". */
static inline const char *tables_symbol(enum driver_row row)
{
	return driver_names + driver_symbol_offsets[row];
}

/* The row of an ABI symbol; DRIVER_ROWS where there is none. */
enum driver_row tables_find_symbol(const char *symbol);

/* The rows of a public name, like "cuMemAlloc", newest first, the per-thread one before the plain
 * one. Returns how many; 0 for an unknown name. */
size_t tables_find_public(const char *name, const uint16_t **ret_rows);

/* What cuGetProcAddress(name, version, flags) names by the documented rule: of the rows with
 * since <= version, and the per-thread ones only if flags ask for them, the newest; DRIVER_ROWS
 * where there is none. */
enum driver_row tables_find_request(const char *name, int version, uint64_t flags);
