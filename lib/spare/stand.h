/* A client that stands for its program, which a spare runs. */
#pragma once

#include "spare/terminal.h"

#include <signal.h>

/* Passes on what this process gets, signals (those in `taken`, which are blocked) and what is typed
 * at `terminal` where there is one, until the program has ended; then ends as it did. `fd` leads to
 * the program's holder. */
_Noreturn void stand_for(int fd, struct terminal *terminal, const sigset_t *taken);
