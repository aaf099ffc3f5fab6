/* cuInit (CUDA Driver API, "Initialization"). Runs in the user's program at its first CUDA call and
 * often again; the first call joins the broker. The driver's answer is passed on as it is. */
#include "base/clock.h"
#include "preload/around.h"
#include "preload/claim.h"
#include "preload/client.h"
#include "preload/first_call.h"
#include "preload/give_way.h"
#include "preload/handlers.h"
#include "preload/mps.h"
#include "preload/observe.h"
#include "preload/under.h"

#define NO_DEVICE (-1)

static void note_devices(void)
{
	CUresult (*count_devices)(int *) = (CUresult(*)(int *))route_real(ROW_cuDeviceGetCount);
	struct hearth_page *page = first_call_page();
	int count;

	if (page && count_devices(&count) == CUDA_SUCCESS && count >= 0)
		__atomic_store_n(&page->device_count, (uint32_t)count, __ATOMIC_RELAXED);
}

static CUresult call_driver(unsigned int flags)
{
	CUresult (*real)(unsigned int) = (CUresult(*)(unsigned int))route_real(ROW_cuInit);

	return real(flags);
}

/* What the keeper saved, by what its own cuInit took on a cold machine. */
static void note_warm(struct first_call *call)
{
	uint64_t visible_us = clock_monotonic_us() - call->start_us;
	uint64_t cold_us = client_keeper_init_us();

	call->how = HEARTH_WARM;
	call->hidden_us = cold_us > visible_us ? cold_us - visible_us : 0;
}

CUresult handle_cuInit(unsigned int flags)
{
	struct give_way_wait wait;
	struct first_call call;
	enum claim claim;
	bool is_warm;
	CUresult rc;

	around_child();
	observe_call();
	client_join();
	if (first_call_is_done(ROW_cuInit, NO_DEVICE))
		return call_driver(flags);
	is_warm = client_is_warm();
	first_call_time(&call, ROW_cuInit, NO_DEVICE);
	give_way_begin(&wait);
	claim = claim_init(flags, &call.hidden_us);
	rc = claim == CLAIM_COMMITTED ? CUDA_SUCCESS : call_driver(flags);
	give_way_end(&wait);
	if (claim == CLAIM_COMMITTED)
		call.how = HEARTH_SPECULATED;
	else if (claim == CLAIM_SQUASHED)
		call.how = HEARTH_SQUASHED;
	else if (is_warm && rc == CUDA_SUCCESS)
		note_warm(&call);
	if (rc == CUDA_SUCCESS) {
		note_devices();
		under_note();
		mps_note_init();
		observe_init(claim == CLAIM_NOTHING ? clock_monotonic_us() - call.start_us
						    : call.hidden_us);
	}
	first_call_end(&call, rc);
	return rc;
}
