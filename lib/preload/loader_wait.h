/* Whether a thread of this process waits for the loader's lock. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* True where that thread, by its id in the kernel, is seen to wait for it now; 0: any thread. Reads
 * /proc/self/task; false where that says nothing. Async-signal-safe. */
bool loader_wait_is_seen(pid_t thread);
