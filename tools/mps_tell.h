/* What `hearth mps` shows people. */
#pragma once

#include "mps/place.h"

#include <jansson.h>
#include <stdio.h>

void mps_tell_started(const struct place *place);
void mps_tell_status(const json_t *roll);
void mps_tell_clients(const json_t *roll, FILE *to);
void mps_tell_limits(const json_t *limits);

/* The last `lines` of each log. The command's exit status. */
int mps_tell_logs(const struct place *place, unsigned lines);
