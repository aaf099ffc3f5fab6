/* Starting a broker on demand. */
#pragma once

#include "base/settings.h"

/* Starts one for this user unless one listens already. Returns at once, whether it comes up or
 * not. */
void start_broker(const struct settings *settings);
