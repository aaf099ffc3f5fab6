/* cuInit (CUDA Driver API, "Initialization"). Runs in the user's program at its first CUDA call and
 * often again; the first call joins the broker. The driver's answer is passed on as it is. */
#include "base/clock.h"
#include "preload/client.h"
#include "preload/first_call.h"
#include "preload/handlers.h"

#define NO_DEVICE (-1)

static void note_devices(void)
{
	CUresult (*count_devices)(int *) = (CUresult(*)(int *))route_real(ROW_cuDeviceGetCount);
	struct hearth_page *page = first_call_page();
	int count;

	if (page && count_devices(&count) == CUDA_SUCCESS && count >= 0)
		page->device_count = (uint32_t)count;
}

CUresult handle_cuInit(unsigned int flags)
{
	CUresult (*real)(unsigned int) = (CUresult(*)(unsigned int))route_real(ROW_cuInit);
	struct first_call call;
	bool is_warm;
	CUresult rc;

	client_join();
	if (first_call_is_done(ROW_cuInit, NO_DEVICE))
		return real(flags);
	is_warm = client_is_warm();
	first_call_time(&call, ROW_cuInit, NO_DEVICE);
	rc = real(flags);
	if (is_warm && rc == CUDA_SUCCESS) {
		uint64_t visible_us = clock_monotonic_us() - call.start_us;
		uint64_t cold_us = client_keeper_init_us();

		call.how = HEARTH_WARM;
		call.hidden_us = cold_us > visible_us ? cold_us - visible_us : 0;
	}
	if (rc == CUDA_SUCCESS)
		note_devices();
	first_call_end(&call, rc);
	return rc;
}
