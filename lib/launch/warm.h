/* Waiting for a keeper that is warm. */
#pragma once

#include "launch/ask.h"
#include "launch/keeper_status.h"

#include <stdbool.h>

/* Asks until the keeper is warm, at most `seconds` (0 asks once), or until `is_enough` says so
 * (NULL: it never does). A broker that is not there may yet be started. Returns 0; WARM_NEVER where
 * waiting would not help: no GPU, none asked for; WARM_TIMEOUT where it failed, and is tried again,
 * or has not come so far. ret_status is the keeper's last; where no broker answered, its `state` is
 * empty and *ret_rc is what asking returned, with the place in ret_reply. */
#define WARM_NEVER 1
#define WARM_TIMEOUT 2
int warm_wait(const struct settings *settings, unsigned seconds, bool (*is_enough)(void),
	struct keeper_status *ret_status, struct ask_reply *ret_reply, int *ret_rc);

#define WARM_TEXT_SIZE 256

/* Why it is not warm, for people: "the keeper failed: ... (CUDA error 802)". */
void warm_explain(const struct keeper_status *status, char ret_text[WARM_TEXT_SIZE]);
