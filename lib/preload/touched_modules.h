/* Python's compiled modules that have been read: part of touched.c. */
#pragma once

#include "profile/files.h"

/* Adds them to the draft, whose first `object_count` files are the mapped objects: they say where
 * Python's folders are. First those of packages with a mapped extension module, then the standard
 * library's, then other packages' beside them. Ends at that monotonic time. */
void touched_modules(struct files_draft *draft, uint32_t object_count, uint64_t end_us);
