/* MPS, as the program meets it. Runs in the user's program, at its cuInit and at first calls. */
#include "preload/mps.h"

#include "base/env.h"
#include "base/log.h"
#include "base/no_mps.h"
#include "driver/mps_code.h"
#include "preload/first_call.h"
#include "preload/route.h"

#include <stdbool.h>
#include <string.h>

#define MPS_ENABLED 133 /* CU_DEVICE_ATTRIBUTE_MPS_ENABLED: 1 in a client (seen on 580.159.04) */

void mps_note_init(void)
{
	const char *folder = env_get(ENV_CUDA_MPS_PIPE_DIRECTORY);
	CUresult (*attribute)(int *, int, CUdevice) =
		(CUresult(*)(int *, int, CUdevice))route_real(ROW_cuDeviceGetAttribute);
	struct hearth_page *page = first_call_page();
	int is_client = 0;

	if (!folder || !strcmp(folder, NO_MPS_FOLDER) ||
		attribute(&is_client, MPS_ENABLED, 0) != CUDA_SUCCESS)
		return;
	if (is_client && page)
		__atomic_fetch_or(&page->flags, HEARTH_PAGE_MPS, __ATOMIC_RELAXED);
	if (is_client)
		log_info("MPS: a client of %s", folder);
	else
		log_error(
			"MPS: no client, though CUDA_MPS_PIPE_DIRECTORY=%s; `hearth doctor --mps` "
			"says why",
			folder);
}

void mps_note_code(const char *call, CUresult rc)
{
	static bool has_said;
	const struct mps_code *code = mps_code_find((int)rc);

	if (!code || __atomic_exchange_n(&has_said, true, __ATOMIC_RELAXED))
		return;
	log_error("%s: %d: %s: %s", call, (int)rc, code->text, code->remedy);
}
