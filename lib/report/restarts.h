/* Kernels of one notebook: a restart is one more run of the same task. */
#pragma once

#include "report/run.h"

#include <stdbool.h>
#include <stdio.h>

/* Does a later run of the log belong to the same notebook as the run `at`? Then that one stands for
 * both. False for what is no notebook's. */
bool restarts_has_later(const struct run_log *log, size_t at);

/* Where runs from `first` on belong to the notebook of the run `at`: one line about all of them,
 * how often it was started, and what it waited. Prints nothing where there is only the one. */
void restarts_print(const struct run_log *log, size_t first, size_t at, FILE *to);
