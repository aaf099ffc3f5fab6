/* What a daemon of MPS is told on the command line. */
#pragma once

#include "mps/place.h"

#include <jansson.h>
#include <stdbool.h>

struct mps_wish { /* each NULL where it was not given, but the device */
	const char *memory, *threads, *device, *users;
	bool is_system;
};

/* Adds the limits to a JSON object of limits (mps/limit.h). The command's status, everything having
 * been said. */
int mps_wish_add_limits(const struct mps_wish *wish, json_t *limits);

/* Whom the machine's daemon is for, as STATE_USERS has it: a new reference. As above. */
int mps_wish_read_users(const struct mps_wish *wish, json_t **ret_users);

/* Writes a file of the place's, and releases the JSON. As above. */
int mps_wish_store(const struct place *place, const char *name, json_t *json);
