/* Starting a broker on demand, for `hearth run`: costs the caller two forks, waits for nothing
 * else. */
#pragma once

#include "base/settings.h"

/* Starts the hearthd that lies beside the running program (or `path`, where not NULL), detached:
 * its own session, cwd /, stdio on /dev/null, no other descriptor, its own environment; not a child
 * of ours, so that the program that we become has no zombie. Whether it comes up is not waited for.
 * Returns 0; SPAWN_RUNNING where a broker listens already and none was started; or -errno (-ENOENT:
 * there is no hearthd there). Must be called while the process has one thread. */
#define SPAWN_RUNNING 1
int broker_spawn(const struct settings *settings, const char *path);
