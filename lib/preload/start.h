/* What the constructor found out, for the rest of libhearth.so. Written once, before the program
 * runs; copies, since a program may rewrite its environment. */
#pragma once

#include "base/settings.h"

#include <stdbool.h>
#include <stdint.h>

/* Also right before the constructor has run (a call from another library's constructor). */
const struct settings *start_settings(void);
uint64_t start_monotonic_us(void);
uint64_t start_realtime_us(void);

/* True where Hearth only passes calls on: switched off, or nothing to help with, but a loaded
 * object is bound to our entries. Nothing is recorded then. */
bool start_is_off(void);
