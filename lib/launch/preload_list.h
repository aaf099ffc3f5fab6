/* LD_PRELOAD as a list: the user's entries first, ours once. Pure functions. */
#pragma once

#include <stdbool.h>

/* Whether `path` can stand in LD_PRELOAD: absolute, without ':' or a space, at which the loader
 * would split it, and without '$', which it would expand. */
bool preload_list_can_hold(const char *path);

/* Adds `library` to `list` (NULL = none): appended, or in the place of another file of the same
 * name, since two copies of the library in one process would both claim to be the driver. Doubles
 * of it go. An entry of the user's is neither dropped nor moved. Separators are ':' and a
 * space, as ld.so(8) has it; a changed list is joined by ':'.
 *
 * Returns 0 with a list that the caller frees; -EINVAL where the library's path cannot stand in a
 * list; -ENOMEM. */
int preload_list_add(const char *list, const char *library, char **ret_list);

/* Whether an entry of `list` (NULL = none) is a file of the library's base name. */
bool preload_list_has(const char *list, const char *library);
