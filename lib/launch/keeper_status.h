/* The broker's status, as far as a tool acts on it. */
#pragma once

#include "launch/ask.h"

#include <jansson.h>
#include <limits.h>
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
	bool is_of_machine;    /* a broker for every user, perhaps outside of our container */
	char driver[PATH_MAX]; /* that the keeper has opened; empty = none yet, or none found */
};

/* What a broker that was started where there is no driver says (broker/keeper.c). */
#define KEEPER_REASON_NO_DRIVER "there is no driver"

/* Asks for the status and parses it: a new reference. As ask_broker; -EPROTO also for what is not
 * the JSON of this version. `ret_reply` as there, its text already freed. */
int keeper_status_ask(
	const struct settings *settings, struct ask_reply *ret_reply, json_t **ret_json);

/* The same with a limit of the caller's. */
int keeper_status_ask_within(const struct settings *settings, uint64_t limit_us,
	struct ask_reply *ret_reply, json_t **ret_json);

/* What the JSON says about the keeper. */
void keeper_status_read(const json_t *json, struct keeper_status *ret_status);

/* Does the keeper nothing for programs whose HEARTH_DRIVER is `driver` (NULL: not set), since the
 * broker was started for another driver, or without one? Paths of the machine's broker may be of
 * another root: it is taken for the right one. */
bool keeper_status_is_for_other(const struct keeper_status *status, const char *driver);

/* The driver's file for messages: its path, or "no driver". */
const char *keeper_status_driver(const struct keeper_status *status);
