/* A tool's questions to a broker: one message, one answer, then the connection closes. */
#pragma once

#include "base/settings.h"
#include "region/address.h"
#include "region/wire.h"

#include <stddef.h>

/* How long a tool waits for an answer. A broker that lives answers in well under a millisecond, but
 * answers RELEASE and STOP when the keeper has ended. */
#define ASK_LIMIT_US 2000000
#define ASK_KEEPER_LIMIT_US 10000000

struct ask_reply {
	struct address address; /* the broker that answered, or the last place looked at */
	int code;               /* the broker's errno where it refused */
	char *text;             /* STATUS: JSON, NUL-terminated, freed by the caller; else NULL */
	size_t length;
};

/* Finds the broker and sends `message`. Returns 0; ASK_REFUSED, with the reason in ret_reply->code;
 * ASK_NO_ADDRESS where HEARTH_SOCKET's value cannot be one (address_setting_fault says why);
 * -ENOENT where no broker answers at any address (ret_reply->address is the first one looked at);
 * -EPERM where the one there is neither ours nor root's; -ETIMEDOUT, -EPROTO, -ECONNRESET where it
 * does not behave. */
#define ASK_REFUSED 1
#define ASK_NO_ADDRESS 2
int ask_broker(const struct settings *settings, const struct wire_message *message,
	struct ask_reply *ret_reply);

/* The same with a limit of the caller's. */
int ask_broker_within(const struct settings *settings, const struct wire_message *message,
	uint64_t limit_us, struct ask_reply *ret_reply);
