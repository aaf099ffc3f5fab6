/* Contexts (CUDA Driver API, "Primary Context Management" and "Context Management"). Runs in the
 * user's program on any thread; every call goes to the driver with the program's own arguments. */
#include "preload/first_call.h"
#include "preload/handlers.h"

/* One handler: TYPES are the entry's parameters with their parentheses, ARGUMENTS the same without
 * types; DEVICE is the device it is about; CREATES whether success means a context there. */
#define CONTEXT_HANDLER(symbol, TYPES, ARGUMENTS, DEVICE, CREATES)                                 \
	CUresult handle_##symbol TYPES                                                             \
	{                                                                                          \
		CUresult(*real) TYPES = (CUresult(*) TYPES)route_real(ROW_##symbol);               \
		struct first_call call;                                                            \
		bool is_timed = first_call_begin_on(&call, ROW_##symbol, DEVICE);                  \
		CUresult rc = real ARGUMENTS;                                                      \
                                                                                                   \
		if (is_timed)                                                                      \
			first_call_end(&call, rc);                                                 \
		if (CREATES && rc == CUDA_SUCCESS)                                                 \
			first_call_add_device(DEVICE);                                             \
		return rc;                                                                         \
	}

CONTEXT_HANDLER(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device),
	device, true)
CONTEXT_HANDLER(cuDevicePrimaryCtxRelease, (CUdevice device), (device), device, false)
CONTEXT_HANDLER(cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device), device, false)
CONTEXT_HANDLER(cuDevicePrimaryCtxReset, (CUdevice device), (device), device, false)
CONTEXT_HANDLER(cuDevicePrimaryCtxReset_v2, (CUdevice device), (device), device, false)
CONTEXT_HANDLER(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned int flags), (device, flags),
	device, false)
CONTEXT_HANDLER(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned int flags),
	(device, flags), device, false)
CONTEXT_HANDLER(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *is_active),
	(device, flags, is_active), device, false)
CONTEXT_HANDLER(cuCtxCreate, (CUcontext * context, unsigned int flags, CUdevice device),
	(context, flags, device), device, true)
CONTEXT_HANDLER(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device),
	(context, flags, device), device, true)
CONTEXT_HANDLER(cuCtxCreate_v3,
	(CUcontext * context, const void *affinities, int affinity_count, unsigned int flags,
		CUdevice device),
	(context, affinities, affinity_count, flags, device), device, true)
CONTEXT_HANDLER(cuCtxCreate_v4,
	(CUcontext * context, const void *parameters, unsigned int flags, CUdevice device),
	(context, parameters, flags, device), device, true)

/* The device shows only after the call: it is the new context's. */
CUresult handle_cuCtxSetCurrent(CUcontext context)
{
	CUresult (*real)(CUcontext) = (CUresult(*)(CUcontext))route_real(ROW_cuCtxSetCurrent);
	struct first_call call;
	CUresult rc;

	if (first_call_is_complete(ROW_cuCtxSetCurrent) || !first_call_has_page())
		return real(context);
	first_call_time(&call, ROW_cuCtxSetCurrent, -1);
	rc = real(context);
	first_call_set_device(&call, first_call_current_device());
	first_call_end(&call, rc);
	return rc;
}
