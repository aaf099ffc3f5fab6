/* What must happen around a fork and at the end of a process that speculates. */
#pragma once

/* Registers it, before there is a thread. */
void around_begin(void);

/* The process ends: waits, at most 5 s, until the thread is not in the driver, which it does not
 * enter again. The driver's exit handlers, and the destructors of its objects, take apart what a
 * call in flight stands on; where the thread cannot be waited for, the handlers are left undone.
 * Whatever of the driver is about to run at the end calls it first; once is enough. */
void around_leave(void);

/* In a fork child: closes what natively it would not have, the descriptors that only the
 * speculation had opened. A bare clone runs no handlers, so the program's calls do so too.
 * Async-signal-safe. */
void around_child(void);
