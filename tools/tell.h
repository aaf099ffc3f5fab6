/* Orders to the broker, and what to say when they fail. */
#pragma once

#include "launch/ask.h"

/* Sends an order (RELEASE, RESUME, STOP); says on stderr why it was not followed. Returns the
 * command's exit status. */
int tell_broker(const struct wire_message *message);

/* Says on stderr why ask_broker did not return 0. Returns COMMAND_FAILED. */
int tell_failure(int rc, const struct ask_reply *reply);
