/* `hearth doctor --prove`: proving now, in the foreground. */
#pragma once

#include <stdbool.h>

/* Runs the undo self-test in processes of hearthd's, stores its verdict and prints it. The exit
 * status: COMMAND_OK where it passed. */
int prove_now(bool is_json);
