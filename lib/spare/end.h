/* Ending the user's waiting spares. */
#pragma once

/* All of them, also those that are taking another's place meanwhile; programs run on. Waits until
 * their pythons are gone, half a second each at most. 0 with how many there were, or -errno. */
int end_all(unsigned *ret_count);
