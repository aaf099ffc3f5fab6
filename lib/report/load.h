/* Reading logs: runs.jsonl of the broker's history and HEARTH_LOG files, also mixed. A line that is
 * damaged (torn by a full disk, of another version, not JSON) is skipped and counted; the rest
 * counts. */
#pragma once

#include "report/run.h"

#include <stdio.h>

/* Adds what the stream holds. Returns 0, -ENOMEM, or the negative
 * errno of a failed read. */
int load_stream(FILE *from, struct run_log *log);

/* The same for a file; "-" is the standard input. Also the errno of open. */
int load_file(const char *path, struct run_log *log);

/* The same for a HEARTH_LOG value, in which %p is any pid, %h any host and %% a percent sign: all
 * files it stands for that were written to since `since_us` (realtime), and of them the runs that
 * began since then. -ENOENT where there is none. */
int load_pattern(const char *pattern, uint64_t since_us, struct run_log *log);
