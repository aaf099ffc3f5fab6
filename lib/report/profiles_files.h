/* Which files a program reads ahead, for people: part of profiles_print and profiles_json. */
#pragma once

#include "report/profiles.h"

/* Objects one by one with how much of them, then files that are read whole by their folder; nothing
 * where they were not read, or there are none. */
void profiles_print_files(const struct profiles_entry *entry, FILE *to);

/* [{"path","size","ranges":[[offset, bytes]...]}], all in bytes; "ranges" is null for a file that
 * is read whole. NULL where they were not read. */
json_t *profiles_files_json(const struct profiles_entry *entry);
