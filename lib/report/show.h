/* A run as text and as JSON. */
#pragma once

#include "report/run.h"

#include <jansson.h>
#include <stdio.h>

/* Headline, table of first calls, totals, and one sentence. */
void show_run(const struct run *run, FILE *to);

/* The sentence alone: "cuInit 9.1 ms (warm: the keeper saved about 91 ms), context 115 ms, ...".
 * Freed by the caller; NULL without memory. */
char *show_sentence(const struct run *run);

/* {"runs":[...],"damaged_lines":n}, each run as in the history; the runs from `first` on. A new
 * reference; NULL without memory. */
json_t *show_json(const struct run_log *log, size_t first);
