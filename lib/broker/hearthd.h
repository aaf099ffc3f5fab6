/* What `hearthd` does with its options: used by tools/hearthd.c alone. */
#pragma once

#include "base/settings.h"
#include "broker/broker.h"

/* Detaches (unless `is_foreground`) and serves until the broker leaves. Returns the process's exit
 * status: 0 also where another broker serves already. Says on stderr why it failed. */
int hearthd_serve(
	const struct broker_options *options, const struct settings *settings, bool is_foreground);
