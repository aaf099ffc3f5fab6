/* What is known of this process before anything is done ahead: the input of decide_start. */
#pragma once

#include "profile/decide.h"
#include "profile/identity.h"

/* From the constructor. True where this may be a program that speculation starts with: only then is
 * more to be asked now. The arguments must stay. */
bool situation_begin(int argc, char **argv);

/* Whether speculation is to start with this program from its next run on. */
void situation_note_start(bool is_listed);

/* After situation_begin: may files be read ahead for this program? */
bool situation_has_files(void);

/* Programs of this executable are to be asked for files from now on. */
void situation_note_files(void);

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

/* How the program was started: its argv[0], or NULL. */
const char *situation_started(void);

/* The folder of profiles, or NULL where no state folder is named. */
const char *situation_profiles(void);
