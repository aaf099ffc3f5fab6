/* Contexts (CUDA Driver API, "Primary Context Management" and "Context Management"). Runs in the
 * user's program on any thread; a call goes to the driver with the program's own arguments, unless
 * it asks for the primary context that was made ahead. */
#include "base/clock.h"
#include "preload/claim.h"
#include "preload/first_call.h"
#include "preload/handlers.h"
#include "preload/observe.h"

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

/* The flags of a device's primary context, for the profile. */
static unsigned int flags_of(CUdevice device)
{
	CUresult (*state)(CUdevice, unsigned int *, int *) = (CUresult(*)(
		CUdevice, unsigned int *, int *))route_real(ROW_cuDevicePrimaryCtxGetState);
	unsigned int flags;
	int is_active;

	return state(device, &flags, &is_active) == CUDA_SUCCESS ? flags : 0;
}

CUresult handle_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	CUresult (*real)(CUcontext *, CUdevice) =
		(CUresult(*)(CUcontext *, CUdevice))route_real(ROW_cuDevicePrimaryCtxRetain);
	struct first_call call;
	bool is_first = first_call_begin_on(&call, ROW_cuDevicePrimaryCtxRetain, device);
	uint64_t hidden_us = 0;
	bool is_ready = context && claim_context(device, context, &hidden_us);
	CUresult rc = is_ready ? CUDA_SUCCESS : real(context, device);

	if (is_first) {
		uint64_t took_us = clock_monotonic_us() - call.start_us + hidden_us;

		if (is_ready) {
			call.how = HEARTH_SPECULATED;
			call.hidden_us = hidden_us;
		}
		first_call_end(&call, rc);
		if (rc == CUDA_SUCCESS) {
			first_call_add_device(device);
			observe_context(device, PROFILE_PRIMARY, 0, flags_of(device), took_us);
		}
	}
	return rc;
}

/* The program does something to a primary context that it has not retained: then there must be
 * none. */
#define YIELDING_HANDLER(symbol, TYPES, ARGUMENTS)                                                 \
	CUresult handle_##symbol TYPES                                                             \
	{                                                                                          \
		CUresult(*real) TYPES = (CUresult(*) TYPES)route_real(ROW_##symbol);               \
		struct first_call call;                                                            \
		bool is_first = first_call_begin_on(&call, ROW_##symbol, device);                  \
		CUresult rc;                                                                       \
                                                                                                   \
		claim_yield(device);                                                               \
		rc = real ARGUMENTS;                                                               \
		if (is_first)                                                                      \
			first_call_end(&call, rc);                                                 \
		return rc;                                                                         \
	}

YIELDING_HANDLER(cuDevicePrimaryCtxRelease, (CUdevice device), (device))
YIELDING_HANDLER(cuDevicePrimaryCtxRelease_v2, (CUdevice device), (device))
YIELDING_HANDLER(cuDevicePrimaryCtxReset, (CUdevice device), (device))
YIELDING_HANDLER(cuDevicePrimaryCtxReset_v2, (CUdevice device), (device))

static CUresult set_flags(enum driver_row row, CUdevice device, unsigned int flags)
{
	CUresult (*real)(CUdevice, unsigned int) =
		(CUresult(*)(CUdevice, unsigned int))route_real(row);
	struct first_call call;
	bool is_first = first_call_begin_on(&call, row, device);
	CUresult rc = CUDA_SUCCESS;

	if (!claim_has_flags(device, flags)) {
		claim_yield(device);
		rc = real(device, flags);
	}
	if (is_first)
		first_call_end(&call, rc);
	return rc;
}

CUresult handle_cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned int flags)
{
	return set_flags(ROW_cuDevicePrimaryCtxSetFlags, device, flags);
}

CUresult handle_cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	return set_flags(ROW_cuDevicePrimaryCtxSetFlags_v2, device, flags);
}

CUresult handle_cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *is_active)
{
	CUresult (*real)(CUdevice, unsigned int *, int *) = (CUresult(*)(
		CUdevice, unsigned int *, int *))route_real(ROW_cuDevicePrimaryCtxGetState);
	struct first_call call;
	unsigned int hidden_flags;
	bool is_first;
	CUresult rc;

	if (flags && is_active && claim_is_hidden(device, &hidden_flags)) {
		*flags = hidden_flags;
		*is_active = 0;
		return CUDA_SUCCESS;
	}
	is_first = first_call_begin_on(&call, ROW_cuDevicePrimaryCtxGetState, device);
	rc = real(device, flags, is_active);
	if (is_first)
		first_call_end(&call, rc);
	return rc;
}

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
