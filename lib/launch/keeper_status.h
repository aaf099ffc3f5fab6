/* The broker's status, as far as a tool acts on it. */
#pragma once

#include "launch/ask.h"

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

struct keeper_status {
	char state[16];    /* "off", "starting", "warm", "released", "failed" */
	char reason[160];  /* why it is off or failed; may be empty */
	pid_t pid;         /* in the broker's pid namespace; 0 = none */
	int rc;            /* CUresult of the keeper's last attempt */
	bool is_simulated; /* its devices are the simulated driver's, which says so in their names
			    */
	bool has_devices;
};

/* Asks for the status and parses it: a new reference. As ask_broker; -EPROTO also for what is not
 * the JSON of this version. `ret_reply` as there, its text already freed. */
int keeper_status_ask(
	const struct settings *settings, struct ask_reply *ret_reply, json_t **ret_json);

/* What the JSON says about the keeper. */
void keeper_status_read(const json_t *json, struct keeper_status *ret_status);
