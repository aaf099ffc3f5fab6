/* Contexts (CUDA Driver API, "Primary Context Management" and "Context Management"). Runs in the
 * user's program on any thread; a call goes to the driver with the program's own arguments, unless
 * it asks for the context that was made ahead. */
#include "preload/context.h"
#include "base/clock.h"
#include "preload/claim.h"
#include "preload/first_call.h"
#include "preload/give_way.h"
#include "preload/handlers.h"
#include "preload/observe.h"
#include "preload/prefetch.h"
#include "preload/routed.h"

/* How long the end of a context waits for a call that the speculative thread has in flight there.
 */
#define HALT_LIMIT_US 10000000

/* The flags of a device's primary context, for the profile. */
static unsigned int flags_of(CUdevice device)
{
	CUresult (*state)(CUdevice, unsigned int *, int *) = (CUresult(*)(
		CUdevice, unsigned int *, int *))route_real(ROW_cuDevicePrimaryCtxGetState);
	unsigned int flags;
	int is_active;

	return state(device, &flags, &is_active) == CUDA_SUCCESS ? flags : 0;
}

static enum hearth_how how_of(enum claim claim, enum hearth_how committed)
{
	switch (claim) {
	case CLAIM_COMMITTED:
		return committed;
	case CLAIM_SQUASHED:
		return HEARTH_SQUASHED;
	default:
		return HEARTH_COLD;
	}
}

/* The references that the program has on primary contexts. */
static int32_t references[HEARTH_MAX_DEVICES];

/* Nothing is loaded ahead while a context ends. */
static bool halt_if(bool is_to_end)
{
	if (is_to_end)
		prefetch_halt(HALT_LIMIT_US);
	return is_to_end;
}

static int32_t *references_on(CUdevice device)
{
	static int32_t elsewhere;

	return device >= 0 && device < (CUdevice)HEARTH_MAX_DEVICES ? &references[device]
								    : &elsewhere;
}

/* A context was made or retained, whoever did it. What cannot be made ahead again (version 0 of a
 * created one) is no news for the profile. */
static void end_creation(struct first_call *call, CUresult rc, enum hearth_how how,
	uint64_t hidden_us, const struct profile_context *made)
{
	uint64_t took_us = clock_monotonic_us() - call->start_us + hidden_us;

	call->how = how;
	call->hidden_us = hidden_us;
	first_call_end(call, rc);
	if (rc)
		return;
	first_call_add_device(made->device);
	if (made->kind == PROFILE_PRIMARY || made->version)
		observe_context(made, took_us);
}

CUresult handle_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	struct first_call call;
	bool is_first = first_call_begin_on(&call, ROW_cuDevicePrimaryCtxRetain, device);
	struct give_way_wait wait = {0};
	uint64_t hidden_us = 0;
	enum claim claim = CLAIM_NOTHING;
	CUresult (*real)(CUcontext *, CUdevice);
	CUresult rc = CUDA_SUCCESS;

	if (is_first)
		give_way_begin(&wait);
	if (context)
		claim = claim_primary(device, context, &hidden_us);
	/* The claim may have made another copy the driver. */
	real = (CUresult(*)(CUcontext *, CUdevice))route_real(ROW_cuDevicePrimaryCtxRetain);
	if (claim != CLAIM_COMMITTED)
		rc = real(context, device);
	if (is_first)
		give_way_end(&wait);
	if (!rc)
		__atomic_fetch_add(references_on(device), 1, __ATOMIC_SEQ_CST);
	if (is_first)
		end_creation(&call, rc, how_of(claim, HEARTH_SPECULATED), hidden_us,
			&(struct profile_context){
				PROFILE_PRIMARY, 0, rc ? 0 : flags_of(device), device});
	return rc;
}

/* The program does something to a primary context: one that it has not retained is not to be there;
 * nor is anything to be loaded into one while it ends. */
static CUresult end_primary(enum driver_row row, CUdevice device, bool is_end)
{
	CUresult (*real)(CUdevice);
	struct first_call call;
	bool is_first = first_call_begin_on(&call, row, device), is_halted;
	CUresult rc;

	claim_yield(device);
	is_halted = halt_if(is_end && prefetch_is_on(device));
	real = (CUresult(*)(CUdevice))route_real(row);
	rc = real(device);
	if (is_halted)
		prefetch_resume();
	if (is_first)
		first_call_end(&call, rc);
	return rc;
}

static CUresult release(enum driver_row row, CUdevice device)
{
	int32_t before = __atomic_fetch_sub(references_on(device), 1, __ATOMIC_SEQ_CST);
	CUresult rc = end_primary(row, device, before <= 1);

	/* There was none to release. */
	if (rc || before < 1)
		__atomic_fetch_add(references_on(device), 1, __ATOMIC_SEQ_CST);
	return rc;
}

/* Are all references those of created contexts? Then the program has none to release. */
static bool is_created_only(CUdevice device)
{
	int32_t created = routed_count(device);

	return created && __atomic_load_n(references_on(device), __ATOMIC_SEQ_CST) <= created;
}

CUresult handle_cuDevicePrimaryCtxRelease(CUdevice device)
{
	return is_created_only(device) ? CUDA_SUCCESS
				       : release(ROW_cuDevicePrimaryCtxRelease, device);
}

CUresult handle_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return is_created_only(device) ? CUDA_ERROR_INVALID_CONTEXT
				       : release(ROW_cuDevicePrimaryCtxRelease_v2, device);
}

CUresult handle_cuDevicePrimaryCtxReset(CUdevice device)
{
	return end_primary(ROW_cuDevicePrimaryCtxReset, device, true);
}

CUresult handle_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return end_primary(ROW_cuDevicePrimaryCtxReset_v2, device, true);
}

static CUresult destroy(enum driver_row row, CUcontext context)
{
	CUresult (*real)(CUcontext) = (CUresult(*)(CUcontext))route_real(row);
	CUdevice device = routed_end(context);
	bool is_halted;
	CUresult rc;

	if (device >= 0)
		return release(ROW_cuDevicePrimaryCtxRelease_v2, device);
	/* Where the program has retained the primary context, that is what the handle means. */
	if (routed_was(context, &device) &&
		!__atomic_load_n(references_on(device), __ATOMIC_SEQ_CST))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	is_halted = halt_if(context && prefetch_is_in(context));
	rc = real(context);
	if (is_halted)
		prefetch_resume();
	return rc;
}

CUresult handle_cuCtxDestroy(CUcontext context)
{
	return destroy(ROW_cuCtxDestroy, context);
}

CUresult handle_cuCtxDestroy_v2(CUcontext context)
{
	return destroy(ROW_cuCtxDestroy_v2, context);
}

static CUresult set_flags(enum driver_row row, CUdevice device, unsigned int flags)
{
	CUresult (*real)(CUdevice, unsigned int);
	struct first_call call;
	bool is_first = first_call_begin_on(&call, row, device);
	CUresult rc = CUDA_SUCCESS;

	if (!claim_has_flags(device, flags)) {
		real = (CUresult(*)(CUdevice, unsigned int))route_real(row);
		rc = real(device, flags);
		if (rc == CUDA_SUCCESS)
			claim_note_flags(device, flags);
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
	if (rc == CUDA_SUCCESS && *is_active && claim_is_hidden(device, &hidden_flags)) {
		*flags = hidden_flags;
		*is_active = 0;
	}
	if (is_first)
		first_call_end(&call, rc);
	return rc;
}

CUresult context_create(uintptr_t real, uint32_t version, CUcontext *ret_handle, unsigned int flags,
	CUdevice device)
{
	if (!real)
		return CUDA_ERROR_NOT_FOUND;
	switch (version) {
	case 3:
		return ((CUresult(*)(CUcontext *, const void *, int, unsigned int, CUdevice))real)(
			ret_handle, NULL, 0, flags, device);
	case 4:
		return ((CUresult(*)(CUcontext *, const void *, unsigned int, CUdevice))real)(
			ret_handle, NULL, flags, device);
	default:
		return ((CUresult(*)(CUcontext *, unsigned int, CUdevice))real)(
			ret_handle, flags, device);
	}
}

/* A context by flags and device alone: routed, or made ahead. False where the driver is to make it;
 * `ret_how` says also then how it came to be. Never routed is what the oldest cuCtxCreate makes:
 * the oldest entries (cuMemAlloc of 32 bits) answer 201 in any other context. */
static bool make_plain(CUcontext *ret_context, const struct profile_context *made, CUresult *ret_rc,
	enum hearth_how *ret_how, uint64_t *ret_hidden_us)
{
	enum claim claim = CLAIM_NOTHING;

	if (made->version > 1 && routed_is_wanted(made->flags, made->device)) {
		*ret_rc = routed_create(
			ret_context, made->flags, made->device, &claim, ret_hidden_us);
		if (!*ret_rc)
			__atomic_fetch_add(references_on(made->device), 1, __ATOMIC_SEQ_CST);
		*ret_how = how_of(claim, HEARTH_SPECULATED);
		return true;
	}
	claim = claim_created(made->version, made->flags, made->device, ret_context, ret_hidden_us);
	*ret_how = how_of(claim, HEARTH_ADOPTED);
	*ret_rc = CUDA_SUCCESS;
	return claim == CLAIM_COMMITTED;
}

/* For an entry that makes a context. TYPES are its parameters with their parentheses, ARGUMENTS the
 * same without types; IS_PLAIN where it takes flags and a device alone, so that one made ahead can
 * be it. */
#define CREATE_HANDLER(symbol, VERSION, TYPES, ARGUMENTS, IS_PLAIN)                                \
	CUresult handle_##symbol TYPES                                                             \
	{                                                                                          \
		struct first_call call;                                                            \
		bool is_first = first_call_begin_on(&call, ROW_##symbol, device);                  \
		bool is_plain = context && (IS_PLAIN);                                             \
		struct profile_context made = {                                                    \
			PROFILE_CREATED, is_plain ? (VERSION) : 0, flags, device};                 \
		CUresult(*real) TYPES;                                                             \
		struct give_way_wait wait = {0};                                                   \
		enum hearth_how how;                                                               \
		uint64_t hidden_us = 0;                                                            \
		CUresult rc;                                                                       \
                                                                                                   \
		if (is_first)                                                                      \
			give_way_begin(&wait);                                                     \
		if (!is_plain || !make_plain(context, &made, &rc, &how, &hidden_us)) {             \
			real = (CUresult(*) TYPES)route_real(ROW_##symbol);                        \
			rc = real ARGUMENTS;                                                       \
		}                                                                                  \
		if (is_first) {                                                                    \
			give_way_end(&wait);                                                       \
			end_creation(&call, rc, is_plain ? how : HEARTH_COLD, hidden_us, &made);   \
		}                                                                                  \
		return rc;                                                                         \
	}

CREATE_HANDLER(cuCtxCreate, 1, (CUcontext * context, unsigned int flags, CUdevice device),
	(context, flags, device), true)
CREATE_HANDLER(cuCtxCreate_v2, 2, (CUcontext * context, unsigned int flags, CUdevice device),
	(context, flags, device), true)
CREATE_HANDLER(cuCtxCreate_v3, 3,
	(CUcontext * context, const void *affinities, int affinity_count, unsigned int flags,
		CUdevice device),
	(context, affinities, affinity_count, flags, device), !affinities && !affinity_count)
CREATE_HANDLER(cuCtxCreate_v4, 4,
	(CUcontext * context, const void *parameters, unsigned int flags, CUdevice device),
	(context, parameters, flags, device), !parameters)

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
