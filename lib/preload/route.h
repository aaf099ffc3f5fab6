/* From the program's call to the driver: which function a stub's slot leads to.
 *
 *   slot 0 --first call--> handler (classes first, handle) --every device seen--> real entry
 *             or real entry (class pass), or route_missing where the driver has no such entry
 *
 * The real entries are kept apart from the slots, so that handlers reach them and a fresh copy of
 * the driver can take the old one's place: route_retarget rewrites both tables. Every store is one
 * atomic word; nothing here holds a lock of its own, so a thread inside the loader cannot deadlock
 * with one outside it. */
#pragma once

#include "driver/abi.h"
#include "driver/stubs.h"

#include <link.h>
#include <stdbool.h>

/* The driver's entry itself; never 0 once a slot was resolved. */
extern uintptr_t route_reals[DRIVER_ROWS];

static inline uintptr_t route_real(enum driver_row row)
{
	return __atomic_load_n(&route_reals[row], __ATOMIC_RELAXED);
}

/* Rewrites all slots: as the gate is now (gate.h). Before route_open succeeded it does nothing. */
void route_refresh(void);

/* From now on `fresh`, another copy of the same file, is the driver: all entries and all generic
 * stubs lead there. The program must not be inside the driver (it has not called its own cuInit).
 */
void route_retarget(struct link_map *fresh);

/* Decides which file the driver is, if that has not been done; false where there is none. Reads the
 * environment: before another thread opens it, call this on one of the program's. */
bool route_locate(const void *caller);

/* Whether the driver's file was loaded by somebody else, by its path: such calls go past us, and
 * nothing can tell when they come. Before route_open; takes the loader's lock. */
bool route_is_open_elsewhere(void);

/* Opens the driver and fills the tables, if that has not been done. `caller` is an address in the
 * object that asks. 0; -ENOENT where there is no driver, -ELIBACC where the loader refuses it. */
int route_open(const void *caller);

/* Whether the driver at hand has the entry. */
bool route_has(enum driver_row row);

/* The driver's path and its link map; NULL before route_open succeeded. */
const char *route_driver_path(void);
const struct link_map *route_driver_map(void);

/* Lets a row's calls go straight to the driver, or back to its handler. */
void route_straight(enum driver_row row);
void route_handled(enum driver_row row);

/* The stub for a pointer that the real cuGetProcAddress gave for `name`: the row's by the spec's
 * rule where it is that entry, another row's of that name, or a generic stub that jumps to it; the
 * pointer itself when the generic stubs have run out. */
void *route_stub_for(const char *name, int version, uint64_t flags, void *pointer);

/* A generic stub for a function of the driver's that no lookup gave: it leads to the driver under a
 * closed gate, too. NULL when the generic stubs have run out. */
void *route_stub_open(void *pointer);
