/* Starting a broker on demand, for `hearth run`: costs the caller two forks, and some 5 ms until
 * the broker serves, so that the very first program meets it. */
#pragma once

#include "base/settings.h"

/* Starts the hearthd that lies beside the running program (or `path`, where not NULL), detached:
 * its own session, cwd /, stdio on /dev/null, no other descriptor, its own environment; not a child
 * of ours, so that the program that we become has no zombie. Waits until it serves or has ended, at
 * most SPAWN_LIMIT_US. Returns 0; SPAWN_RUNNING where a broker listens already and none was
 * started; SPAWN_ENDED where it has ended, and none serves; or -errno (-ENOENT: there is no hearthd
 * there). In the last two cases `ret_why`, which may be NULL, says why in words. Must be called
 * while the process has one thread. */
#define SPAWN_RUNNING 1
#define SPAWN_ENDED 2
#define SPAWN_WHY_SIZE 512
#define SPAWN_LIMIT_US 50000
int broker_spawn(const struct settings *settings, const char *path, char ret_why[SPAWN_WHY_SIZE]);
