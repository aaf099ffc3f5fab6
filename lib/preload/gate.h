/* The gate: before the program's own cuInit every entry answers as an uninitialised driver does,
 * though the driver in this process is ready.
 *
 * While it is closed a row's slot leads
 *   - to its handler, for cuInit and the lookups; straight on, for what needs no cuInit;
 *   - to an answer of 3 (NOT_INITIALIZED), where the spec says that it is 3 whatever the arguments;
 *   - else into the pristine copy: a fresh copy of the driver in which nobody has called cuInit,
 *     opened when it is first needed. It also takes the old copy's place after a squash. */
#pragma once

#include "preload/route.h"

#include <stdbool.h>

/* Closes it, before the speculative thread opens or initialises the driver. */
void gate_close(void);

/* Opens it: the program's cuInit has been committed, or nothing was made ahead after all. */
void gate_open(void);

bool gate_is_closed(void);

/* Where a row's slot leads while the gate is closed; 0: leave it empty, gate_resolve decides at
 * each call. `handler` is the row's, or 0. */
uintptr_t gate_target(enum driver_row row, uintptr_t handler);

/* Same for an entry that is not in the spec. */
uintptr_t gate_target_unknown(void);

/* The row's entry in the pristine copy; 0 where that cannot be opened. Takes the loader's lock. */
uintptr_t gate_resolve(enum driver_row row);

/* The pristine copy, opened now if it was not; NULL where that fails. After it has become the
 * driver (route_retarget) call gate_forget_pristine, so that another fork child gets its own. */
struct link_map *gate_pristine(void);
void gate_forget_pristine(void);
