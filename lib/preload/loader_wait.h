/* Whether a thread of this process waits for the loader's lock. */
#pragma once

#include <stdbool.h>

/* True where some thread is seen to wait for it now. Reads /proc/self/task; false where that says
 * nothing. Async-signal-safe. */
bool loader_wait_is_seen(void);
