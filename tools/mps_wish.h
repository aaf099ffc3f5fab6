/* What a daemon of MPS is told on the command line. */
#pragma once

#include "mps/place.h"

struct mps_wish { /* each NULL where it was not given, but the device */
	const char *memory, *threads, *device, *users;
	bool is_system;
};

/* Adds the limits to the place's, and sets whom the machine's daemon is for. The command's status,
 * everything having been said. */
int mps_wish_store_limits(const struct mps_wish *wish, const struct place *place);
int mps_wish_store_users(const struct mps_wish *wish, const struct place *place);
