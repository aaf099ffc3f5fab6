/* Entries that an older driver does not have must not be found in us either: dlsym answers NULL,
 * as it would without Hearth. */
#pragma once

#include <stdint.h>

/* Takes the exported stubs of rows whose real entry is 0 out of the loader's sight. May run on
 * several threads at once. */
void hide_missing(const uintptr_t *reals);
