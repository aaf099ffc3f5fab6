/* Warnings about runs, for every command that shows one: what the run says (report/warnings.h), and
 * what only the machine can. */
#pragma once

#include "report/findings.h"
#include "report/profiles.h"
#include "report/run.h"

#include <jansson.h>
#include <stdio.h>

/* Prints one line for each warning about the log's run `at`, and one for its remedy. */
void warn_print(const struct run_log *log, size_t at, const struct profiles *profiles, FILE *to);

/* [{"id","text","remedy"}] of those that are warnings or worse. A new reference. */
json_t *warn_to_json(const struct findings *findings);

/* Each run of show_json's answer, which begins with the log's run `first`, gets its "warnings". */
void warn_add_json(
	json_t *shown, const struct run_log *log, size_t first, const struct profiles *profiles);
