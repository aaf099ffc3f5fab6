/* Created contexts that are the primary one. Runs in the user's program on any thread, inside
 * cuCtxCreate and cuCtxDestroy; holds no lock. */
#include "preload/routed.h"

#include "hearth/region.h"
#include "preload/route.h"
#include "preload/start.h"

/* What cuCtxCreate knows (CUDA Driver API, CUctx_flags): at most one of the first three. */
#define FLAGS_SCHEDULE 0x07u
#define FLAGS_KNOWN 0xffu

static struct {
	CUcontext handle; /* stays the same for the life of the process */
	int32_t count;
} routed[HEARTH_MAX_DEVICES];

static bool is_device(CUdevice device)
{
	int (*count_devices)(int *) = (int (*)(int *))route_real(ROW_cuDeviceGetCount);
	int count;

	return device >= 0 && device < (CUdevice)HEARTH_MAX_DEVICES && !count_devices(&count) &&
	       device < count;
}

bool routed_is_wanted(unsigned int flags, CUdevice device)
{
	unsigned int schedule = flags & FLAGS_SCHEDULE;

	return start_settings()->contexts == CONTEXT_PRIMARY && !(flags & ~FLAGS_KNOWN) &&
	       !(schedule & (schedule - 1)) && is_device(device);
}

static bool is_active(CUdevice device)
{
	CUresult (*state)(CUdevice, unsigned int *, int *) = (CUresult(*)(
		CUdevice, unsigned int *, int *))route_real(ROW_cuDevicePrimaryCtxGetState);
	unsigned int flags;
	int active;

	return !state(device, &flags, &active) && active;
}

/* Flags are given to a primary context that is not there yet; another's are left alone. */
static CUresult give_flags(unsigned int flags, CUdevice device)
{
	CUresult (*set)(CUdevice, unsigned int);
	CUresult rc;

	if (!flags || claim_has_flags(device, flags) || is_active(device))
		return CUDA_SUCCESS;
	set = (CUresult(*)(CUdevice, unsigned int))route_real(ROW_cuDevicePrimaryCtxSetFlags_v2);
	rc = set(device, flags);
	if (!rc)
		claim_note_flags(device, flags);
	return rc;
}

CUresult routed_create(CUcontext *ret_context, unsigned int flags, CUdevice device,
	enum claim *ret_claim, uint64_t *ret_hidden_us)
{
	CUresult rc = give_flags(flags, device);
	CUresult (*retain)(CUcontext *, CUdevice), (*push)(CUcontext), (*release)(CUdevice);
	CUcontext context;

	if (rc)
		return rc;
	*ret_claim = claim_primary(device, &context, ret_hidden_us);
	retain = (CUresult(*)(CUcontext *, CUdevice))route_real(ROW_cuDevicePrimaryCtxRetain);
	push = (CUresult(*)(CUcontext))route_real(ROW_cuCtxPushCurrent_v2);
	release = (CUresult(*)(CUdevice))route_real(ROW_cuDevicePrimaryCtxRelease_v2);
	if (*ret_claim != CLAIM_COMMITTED)
		rc = retain(&context, device);
	if (rc)
		return rc;
	rc = push(context);
	if (rc) {
		release(device);
		return rc;
	}
	__atomic_store_n(&routed[device].handle, context, __ATOMIC_RELAXED);
	__atomic_fetch_add(&routed[device].count, 1, __ATOMIC_SEQ_CST);
	*ret_context = context;
	return CUDA_SUCCESS;
}

bool routed_was(CUcontext context, CUdevice *ret_device)
{
	for (CUdevice device = 0; context && device < (CUdevice)HEARTH_MAX_DEVICES; device++) {
		if (__atomic_load_n(&routed[device].handle, __ATOMIC_RELAXED) != context)
			continue;
		*ret_device = device;
		return true;
	}
	return false;
}

static bool take_one(CUdevice device)
{
	int32_t count = routed_count(device);

	while (count > 0)
		if (__atomic_compare_exchange_n(&routed[device].count, &count, count - 1, false,
			    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
			return true;
	return false;
}

CUdevice routed_end(CUcontext context)
{
	CUresult (*get)(CUcontext *) = (CUresult(*)(CUcontext *))route_real(ROW_cuCtxGetCurrent);
	CUresult (*pop)(CUcontext *) = (CUresult(*)(CUcontext *))route_real(ROW_cuCtxPopCurrent_v2);
	CUcontext current;
	CUdevice device;

	if (!routed_was(context, &device) || !take_one(device))
		return -1;
	if (!get(&current) && current == context)
		pop(&current);
	return device;
}

int32_t routed_count(CUdevice device)
{
	return device >= 0 && device < (CUdevice)HEARTH_MAX_DEVICES
		       ? __atomic_load_n(&routed[device].count, __ATOMIC_SEQ_CST)
		       : 0;
}
