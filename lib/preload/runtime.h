/* The runtime's one entry that Hearth sees by name. */
#pragma once

#include "driver/abi.h"

/* cudaSetDevice of the runtime with that SONAME, called from `caller` (a return address). */
CUresult runtime_set_device(int device, const char *soname, const void *caller);
