/* Making contexts, for what speculates on them. */
#pragma once

#include "driver/abi.h"

#include <stdint.h>

/* cuCtxCreate_v<version>(flags, device) by that entry's address, without affinities and parameters;
 * version 1 is the plain entry. CUDA_ERROR_NOT_FOUND for the address 0. */
CUresult context_create(uintptr_t real, uint32_t version, CUcontext *ret_handle, unsigned int flags,
	CUdevice device);
