/* The hooks for a quiet copy's imports that open, name and close descriptors. */
#pragma once

#include "driver/imports.h"

/* Redirects them, as imports_redirect does. */
int quiet_opens_redirect(const struct link_map *map);

/* The hook for a function that the copy looks up at run time; NULL where there is none. (580.159.04
 * finds pipe2 and others by dlvsym, and calls eventfd2 by number.) */
void *quiet_opens_find(const char *name);
