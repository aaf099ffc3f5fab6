/* The broker and its keeper, as a program started now would find them. */
#pragma once

#include "report/findings.h"

/* Asks the broker, if there is one, for its status. Starts none. */
void broker_side_examine(struct findings *findings);

/* What a status text (JSON, as WIRE_STATUS is answered) says about the keeper. */
void broker_side_judge(
	const char *address, const char *status, const char *driver, struct findings *findings);
