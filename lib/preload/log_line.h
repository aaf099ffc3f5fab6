/* HEARTH_LOG: what happened, as JSON lines in a file of the user's choice. One open, one write, one
 * close per line; %p in the file's name is the pid, %h the host's name. */
#pragma once

#include "hearth/region.h"

/* The line of one record. Does nothing without HEARTH_LOG. */
void log_line_call(const struct hearth_record *record);

/* The line of the program's end, from its page's totals. */
void log_line_exit(const struct hearth_page *page);
