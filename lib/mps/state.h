/* What the supervisor says of itself: a JSON object in the place's file `state`, replaced whole;
 * and what the user has set with `hearth mps limit`: `limits`, likewise. Both 0644 below folders
 * that only their user, or those whom root serves, can enter. */
#pragma once

#include "mps/place.h"

#include <jansson.h>
#include <sys/types.h>

enum state_phase { STATE_STARTING, STATE_ACTIVE, STATE_WAITING, STATE_STOPPING };

/* "starting", "active", "waiting" (for the next try), "stopping". */
const char *state_phase_name(enum state_phase phase);

/* Writes JSON to a file of the place's, and releases it. 0 or -errno. */
int state_write(const struct place *place, const char *name, json_t *json);

/* Reads it: a new reference, or NULL where there is none, where it is damaged, or where it belongs
 * to neither us nor root. */
json_t *state_read(const struct place *place, const char *name);

#define STATE_FILE "state"
#define STATE_LIMITS "limits"
#define STATE_USERS "users" /* the machine's: {"uids": [1000, 1001]}, whom it is for */
