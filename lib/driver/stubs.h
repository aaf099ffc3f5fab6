/* The generated stubs (driver_stubs.S): what the program calls. Each jumps through its slot; an
 * empty slot leads to route_resolve. Slots may be rewritten at any time, atomically: this is how a
 * first-call handler gets out of the way, and how a fresh copy takes the old one's place. */
#pragma once

#include "driver/tables.h"

extern uintptr_t driver_slots[DRIVER_ROWS];
extern uintptr_t driver_generic_slots[DRIVER_GENERIC_STUBS];
extern const int32_t driver_handler_distances[DRIVER_ROWS]; /* from the table's start; 0 = none */
extern const int32_t driver_stub_distances[DRIVER_ROWS];
extern const char driver_generic_stubs[];
extern const char driver_stub_resolve[]; /* what a generic stub's slot leads to, to be resolved */

#define DRIVER_GENERIC_STUB_SIZE 16

/* The handler of a row of class first or handle; 0 for a row that is only passed on. */
static inline uintptr_t stubs_handler(enum driver_row row)
{
	int32_t distance = driver_handler_distances[row];

	return distance ? (uintptr_t)driver_handler_distances + (uintptr_t)(intptr_t)distance : 0;
}

/* The exported stub itself, whatever else in the process has that name. */
static inline uintptr_t stubs_address(enum driver_row row)
{
	return (uintptr_t)driver_stub_distances + (uintptr_t)(intptr_t)driver_stub_distances[row];
}

static inline uintptr_t stubs_generic(size_t index)
{
	return (uintptr_t)driver_generic_stubs + index * DRIVER_GENERIC_STUB_SIZE;
}

/* Called by a stub whose slot is empty, or leads to driver_stub_resolve; returns where to jump.
 * Generic stubs are numbered from DRIVER_ROWS on. `caller` is the return address. */
uintptr_t route_resolve(unsigned int number, const void *caller);
