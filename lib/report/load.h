/* Reading logs: runs.jsonl of the broker's history and HEARTH_LOG files, also mixed. A line that is
 * damaged (torn by a full disk, of another version, not JSON) is skipped and counted; the rest
 * counts. */
#pragma once

#include "report/run.h"

#include <stdio.h>

/* Adds what the stream holds, from where it stands to its end. Returns 0, -ENOMEM, or the negative
 * errno of a failed read. */
int load_stream(FILE *from, struct run_log *log);

/* The same for a file, from `offset` on; "-" is the standard input. Also the errno of open. */
int load_file(const char *path, long offset, struct run_log *log);
