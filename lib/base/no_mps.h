/* Where programs look for MPS's daemon that are to run without MPS. Nothing can lie below
 * /dev/null, and the variable stands before the driver's default folder. */
#pragma once

#define NO_MPS_FOLDER "/dev/null/none"
