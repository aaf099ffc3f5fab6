/* The state of a process that holds a spare, for hold.c and hand_over.c alone. */
#pragma once

#include "base/settings.h"
#include "region/address.h"
#include "spare/kind.h"
#include "spare/learned.h"
#include "spare/pty.h"
#include "spare/python.h"
#include "spare/wire.h"

#include <stdint.h>

struct holder {
	const struct spare_plan *plan;
	char path[ADDRESS_MAX]; /* of its socket */
	int listen_fd, signal_fd, report_fd;
	enum spare_state state;
	uint64_t since_us; /* monotonic: when that state began */
	int tries;
	struct settings settings;
	struct learned learned; /* what it has imported, where that was learned */
	struct python python;
	struct pty pty;
};
