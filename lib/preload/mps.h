/* What the program learns of MPS, for people: whether it is a client, and what a code of MPS's
 * means. Silent unless HEARTH_LOG_LEVEL asks. */
#pragma once

#include "driver/abi.h"

/* After the program's first cuInit that succeeded. */
void mps_note_init(void);

/* After a recorded call: one line for the first code that only MPS gives. */
void mps_note_code(const char *call, CUresult rc);
