/* First-call records. Runs in the user's program inside its own calls, on any thread; must not
 * allocate, lock, or make a syscall once a row's firsts are over, and never write to the page of a
 * parent. */
#include "preload/first_call.h"

#include "base/at_start.h"
#include "base/clock.h"
#include "preload/log_line.h"
#include "preload/mps.h"
#include "preload/prefetch.h"
#include "preload/start.h"
#include "region/record.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* A set of devices in 64 bits: bit 0 stands for "no device". */
#define DEVICE_BITS 63

static struct first_marks marks[DRIVER_ROWS];
static uint64_t known; /* devices with a context */
AT_START_DATA static struct hearth_page *current_page;
static pid_t page_owner;
static bool has_work, has_result;

static uint64_t bit_of(int device)
{
	return device >= 0 && device < DEVICE_BITS ? UINT64_C(2) << device : 1;
}

static bool covers(uint64_t set, uint64_t wanted)
{
	return wanted && (set & wanted) == wanted;
}

static struct hearth_page *any_page(void)
{
	return __atomic_load_n(&current_page, __ATOMIC_ACQUIRE);
}

struct hearth_page *first_call_page(void)
{
	struct hearth_page *page = any_page();

	return page && page_owner == getpid() ? page : NULL;
}

void first_call_set_page(struct hearth_page *page)
{
	page_owner = getpid();
	__atomic_store_n(&current_page, page, __ATOMIC_RELEASE);
}

void first_call_forget(void)
{
	__atomic_store_n(&current_page, NULL, __ATOMIC_RELEASE);
	memset(marks, 0, sizeof(marks));
	known = 0;
	has_work = has_result = false;
}

int first_call_current_device(void)
{
	CUresult (*get)(CUdevice *) = (CUresult(*)(CUdevice *))route_real(ROW_cuCtxGetDevice);
	CUdevice device;

	return get(&device) == CUDA_SUCCESS ? device : -1;
}

unsigned int first_call_sm(int device)
{
	CUresult (*get)(int *, int, CUdevice) =
		(CUresult(*)(int *, int, CUdevice))route_real(ROW_cuDeviceGetAttribute);
	int major, minor;

	return device < 0 || get(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) ||
			       get(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
		       ? 0
		       : (unsigned int)(10 * major + minor);
}

void first_call_set_device(struct first_call *call, int device)
{
	call->device = device;
}

bool first_call_has_page(void)
{
	return any_page();
}

bool first_call_is_named_done(const struct first_marks *own, int device)
{
	return __atomic_load_n(&own->done, __ATOMIC_RELAXED) & bit_of(device);
}

bool first_call_is_done(enum driver_row row, int device)
{
	return first_call_is_named_done(&marks[row], device);
}

bool first_call_is_complete(enum driver_row row)
{
	return covers(__atomic_load_n(&marks[row].done, __ATOMIC_RELAXED),
		__atomic_load_n(&known, __ATOMIC_RELAXED));
}

static bool still_watches(enum first_duty duty)
{
	return duty >= FIRST_RESULT && !__atomic_load_n(&has_result, __ATOMIC_RELAXED);
}

static void leave_if_complete(enum driver_row row, enum first_duty duty)
{
	if (first_call_is_complete(row) && !still_watches(duty))
		route_straight(row);
}

void first_call_add_device(int device)
{
	uint64_t bit = bit_of(device);

	if (device < 0 || !any_page() || __atomic_load_n(&known, __ATOMIC_RELAXED) & bit ||
		__atomic_fetch_or(&known, bit, __ATOMIC_ACQ_REL) & bit)
		return;
	for (unsigned int row = 0; row < DRIVER_ROWS; row++)
		if (!(__atomic_load_n(&marks[row].done, __ATOMIC_RELAXED) & bit))
			route_handled(row);
}

void first_call_time_named(
	struct first_call *ret_call, const char *name, struct first_marks *own, int device)
{
	struct hearth_page *page = any_page();

	ret_call->name = name;
	ret_call->marks = own;
	ret_call->row = DRIVER_ROWS;
	ret_call->duty = FIRST_OTHER;
	ret_call->device = device;
	ret_call->how = HEARTH_COLD;
	ret_call->hidden_us = ret_call->size = 0;
	ret_call->object[0] = '\0';
	ret_call->is_forced = ret_call->can_leave = false;
	ret_call->inner_us = page ? __atomic_load_n(&page->visible_us, __ATOMIC_RELAXED) : 0;
	ret_call->start_us = clock_monotonic_us();
}

void first_call_time(struct first_call *ret_call, enum driver_row row, int device)
{
	first_call_time_named(ret_call, tables_symbol(row), &marks[row], device);
	ret_call->row = row;
}

bool first_call_begin_on(struct first_call *ret_call, enum driver_row row, int device)
{
	if (!any_page() || first_call_is_done(row, device))
		return false;
	first_call_time(ret_call, row, device);
	return true;
}

bool first_call_begin(struct first_call *ret_call, enum driver_row row, enum first_duty duty)
{
	int device;

	if (duty == FIRST_LAUNCH)
		prefetch_launching();
	if (!any_page())
		return false;
	device = first_call_current_device();
	if (first_call_is_done(row, device) && !still_watches(duty)) {
		leave_if_complete(row, duty);
		return false;
	}
	first_call_time(ret_call, row, device);
	ret_call->duty = duty;
	ret_call->can_leave = true;
	return true;
}

static void note_result(struct hearth_page *page, enum first_duty duty, uint64_t end_us)
{
	if (duty == FIRST_WORK || duty == FIRST_LAUNCH || duty == FIRST_RESULT)
		__atomic_store_n(&has_work, true, __ATOMIC_RELAXED);
	if (duty < FIRST_RESULT || !__atomic_load_n(&has_work, __ATOMIC_RELAXED) ||
		__atomic_exchange_n(&has_result, true, __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&page->first_result_us, end_us - start_monotonic_us(), __ATOMIC_RELAXED);
}

static void publish(
	struct hearth_page *page, const struct first_call *call, CUresult rc, uint64_t end_us)
{
	struct hearth_record record = {
		.device = call->device >= 0 && call->device < DEVICE_BITS ? call->device : -1,
		.rc = rc,
		.how = call->how,
		.at_us = call->start_us - start_monotonic_us(),
		.visible_us = end_us - call->start_us,
		.hidden_us = call->hidden_us,
		.size = call->size,
	};
	/* What was recorded inside this call counts there. */
	uint64_t inner_us = __atomic_load_n(&page->visible_us, __ATOMIC_RELAXED) - call->inner_us;

	record.visible_us -= inner_us < record.visible_us ? inner_us : record.visible_us;
	record_name(&record, call->name, call->object);
	record_write(page, &record);
	log_line_call(&record);
	if (rc != CUDA_SUCCESS)
		mps_note_code(call->name, rc);
}

/* Claims the record: true for one thread, at the first success or the first failure before it. */
static bool is_first(struct first_marks *own, uint64_t bit, CUresult rc)
{
	if (rc == CUDA_SUCCESS)
		return !(__atomic_fetch_or(&own->done, bit, __ATOMIC_ACQ_REL) & bit);
	return !(__atomic_load_n(&own->done, __ATOMIC_RELAXED) & bit) &&
	       !(__atomic_fetch_or(&own->failed, bit, __ATOMIC_ACQ_REL) & bit);
}

void first_call_end(struct first_call *call, CUresult rc)
{
	uint64_t end_us = clock_monotonic_us();
	struct hearth_page *page = first_call_page();
	int kept = errno;

	/* No page, or a parent's: this process records nothing until its own cuInit. */
	if (!page)
		return;
	if (is_first(call->marks, bit_of(call->device), rc) || call->is_forced)
		publish(page, call, rc, end_us);
	if (rc == CUDA_SUCCESS)
		note_result(page, call->duty, end_us);
	if (call->can_leave)
		leave_if_complete(call->row, call->duty);
	errno = kept;
}
