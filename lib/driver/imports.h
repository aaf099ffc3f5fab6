/* Redirecting what one loaded object imports, in its own slots (GOT), so that only its own calls
 * are seen: no symbol is interposed and nobody else's calls change.
 *
 * The real libcuda imports through ordinary slots (partial RELRO, measured on 580.159.04). */
#pragma once

#include <link.h>
#include <stddef.h>

struct import_hook {
	const char *name;  /* the imported symbol */
	void *replacement; /* what its slots are to hold */
};

/* Points every slot of `map` that imports one of the names at its replacement. Never takes the
 * loader's lock. No thread may be inside the object meanwhile. Returns the number of slots
 * changed (a positive outcome; 0: the object imports none of the names), -ENOEXEC where the
 * object's tables are not as expected, or the negative errno of mprotect. */
int imports_redirect(const struct link_map *map, const struct import_hook *hooks, size_t count);
