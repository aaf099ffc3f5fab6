/* A terminal's settings while somebody passes its bytes on, and after it. A process may only call
 * these where the terminal is its group's, or not its own, or with SIGTTOU blocked. */
#pragma once

#include <stdbool.h>
#include <termios.h>

/* Whether it passes every byte on as it is, as cfmakeraw(3) has it. */
bool raw_is(int tty);

/* Makes it so. 0 or -errno. */
int raw_enter(int tty);

/* Sets these; not where it is raw no more, since somebody else has set it then. */
void raw_leave(int tty, const struct termios *settings);
