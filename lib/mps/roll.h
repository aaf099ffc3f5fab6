/* What `hearth mps status` and `clients` show: the supervisor's state, its daemon's servers, and
 * their clients, joined by pid with what the broker knows of them. */
#pragma once

#include "mps/control.h"
#include "mps/place.h"

#include <jansson.h>

/* A new reference: {"v":1, "running":bool, "system":bool, "phase", "why", "supervisor", "daemon",
 * "restarts", "pipe", "log", "limits":{}, "servers":[{"pid","uid","state","clients":[{"pid","uid",
 * "program","task"}]}]}. `program` is a base name. Where the daemon does not answer, "servers" is
 * null and "why" says so. NULL without memory. */
json_t *roll_make(const struct place *place, pid_t supervisor, const struct control *control);

/* How many clients it counts. */
size_t roll_clients(const json_t *roll);
