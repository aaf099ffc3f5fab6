/* The end of a program that comes to its end by itself: its page is marked, and HEARTH_LOG gets the
 * exit line. */
#pragma once

/* Called from our destructor. Does nothing in a fork child that has no page of its own, or in a
 * process that never called cuInit. Tears nothing down: the runtime still calls the driver from
 * destructors that run later. */
void exit_line_write(void);
