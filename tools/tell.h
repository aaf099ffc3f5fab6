/* Orders to the broker, and what to say when they fail. */
#pragma once

#include "launch/ask.h"
#include "launch/keeper_status.h"

/* Sends an order (RELEASE, RESUME, STOP); says on stderr why it was not followed. Returns the
 * command's exit status. */
int tell_broker(const struct wire_message *message);

/* Says on stderr why ask_broker did not return 0. Returns COMMAND_FAILED. */
int tell_failure(int rc, const struct ask_reply *reply);

/* Says on stderr, after `before`, in which state the keeper is, and why. Returns COMMAND_FAILED. */
int tell_keeper(const char *before, const struct keeper_status *status);
