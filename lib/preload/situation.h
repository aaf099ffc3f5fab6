/* What is known of this process before anything is done ahead: the input of decide_start. */
#pragma once

#include "profile/decide.h"
#include "profile/identity.h"

/* Called from the constructor, while the working folder is what the arguments were meant for. */
void situation_begin(int argc, char **argv);

/* This program's identity, computed when it is first asked for; NULL where it has none. */
const struct identity *situation_identity(void);

/* Is there a profile, or does the user ask for speculation without one? Reads the profile. */
bool situation_has_cause(void);

/* Completes it with the driver's build-id and the verdict on its undo. `driver` is the driver's
 * path. 0 or -ENOENT where the build-id cannot be had. Files are opened read-only, nothing is
 * allocated. The section points into this module. */
int situation_read(const char *driver, struct situation *ret_situation);

/* The profile's section that situation_read found, or NULL. */
const struct profile_section *situation_section(void);

/* The folder of profiles, or NULL where no state folder is named. */
const char *situation_profiles(void);
