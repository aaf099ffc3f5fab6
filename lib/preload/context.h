/* Making contexts, for what speculates on them. */
#pragma once

#include "driver/abi.h"

#include <stdint.h>

/* The driver's cuCtxCreate_v<version>(flags, device), without affinities and parameters; version 1
 * is the plain entry. CUDA_ERROR_NOT_FOUND for a version that there is not. */
CUresult context_create(
	uint32_t version, CUcontext *ret_handle, unsigned int flags, CUdevice device);
