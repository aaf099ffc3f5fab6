/* Walking over the folder of profiles. */
#pragma once

#include "profile/profile.h"

/* Is that a profile's file name: the first half of an identity in hexadecimal? */
bool folder_is_profile_name(const char *name);

/* Called for each entry, with the folder's descriptor; a result other than 0 ends the walk. */
typedef int folder_visit(int folder, const char *name, void *context);

/* Visits all entries. 0, what visit returned, or a negative errno; a missing folder is empty. No
 * allocation. */
int folder_walk(const char *path, folder_visit *visit, void *context);
