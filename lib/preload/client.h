/* The program's side of the broker, and its page. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Called at each cuInit: at the program's first one (and the first in a fork child) joins the
 * broker, within the time that joining may take, and starts recording; without a broker into
 * private memory. Of threads that race here one joins; the others go on unrecorded. */
void client_join(void);

/* Whether the keeper has the driver's state warm now. */
bool client_is_warm(void);

/* What the keeper's cuInit took on a cold machine; 0 = not known. */
uint64_t client_keeper_init_us(void);

/* The first lookup of cuInit that we saw, for the page. */
void client_note_lookup(void);
