/* The descriptors that a quiet copy opens on its thread: what a fork child of a program that has
 * not used the driver yet must not have, and what must still be the same files when the work is
 * committed. */
#pragma once

#include "driver/imports.h"

#include <stdbool.h>

/* The hooks for the copy's imports that open and close descriptors (driver/imports.h), to be
 * redirected together with the others. */
extern const struct import_hook quiet_files_hooks[];
extern const size_t quiet_files_hook_count;

/* Are all descriptors that were opened and not closed since still the files they were? */
bool quiet_files_are_valid(void);

/* Closes them all: for a fork child that uses a fresh copy. Async-signal-safe. */
void quiet_files_close(void);

/* How many are open, as far as the hooks saw. */
unsigned int quiet_files_count(void);
