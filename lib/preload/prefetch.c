/* Loading ahead. Runs on the speculative thread, inside the quiet copy of the driver; must never
 * enter the loader by itself, nor call the driver while the program ends the context or itself. */
#include "preload/prefetch.h"

#include "base/clock.h"
#include "base/log.h"
#include "driver/quiet.h"
#include "preload/prefetch_table.h"
#include "preload/route.h"
#include "preload/situation.h"
#include "preload/speculation.h"
#include "preload/start.h"

#include <string.h>

/* CUmoduleLoadingMode */
#define LOADING_EAGER 1
/* CUstreamCaptureMode */
#define CAPTURE_RELAXED 2
/* While the program ends a context, it is looked so often whether it is done. */
#define HALT_STEP_US 100000

struct prefetch prefetch;

static struct {
	CUresult (*name)(char *ret_name, int size, CUdevice device);
	CUresult (*loading_mode)(int *ret_mode);
	CUresult (*exchange_mode)(int *mode);
	CUresult (*load_library)(CUlibrary *ret_library, const void *code, int *jit_options,
		void **jit_values, unsigned int jit_count, int *options, void **values,
		unsigned int count);
	CUresult (*unload_library)(CUlibrary library);
	CUresult (*library_kernel)(void **ret_kernel, CUlibrary library, const char *name);
	CUresult (*kernel_function)(void **ret_function, void *kernel);
	CUresult (*load_data)(CUmodule *ret_module, const void *image);
	CUresult (*load_data_ex)(CUmodule *ret_module, const void *image, unsigned int count,
		int *options, void **values);
	CUresult (*load_fatbin)(CUmodule *ret_module, const void *image);
	CUresult (*unload_module)(CUmodule module);
	CUresult (*module_function)(void **ret_function, CUmodule module, const char *name);
	CUresult (*load_function)(void *function);
} driver;

/* The epoch that the thread loads in. */
static uint32_t epoch;
/* Device memory that was free before the first image. */
static size_t free_before;

void prefetch_take_entries(void)
{
#define TAKE(member, symbol)                                                                       \
	driver.member =                                                                            \
		(__typeof__(driver.member))(route_has(ROW_##symbol) ? route_real(ROW_##symbol)     \
								    : 0)
	TAKE(name, cuDeviceGetName);
	TAKE(loading_mode, cuModuleGetLoadingMode);
	TAKE(exchange_mode, cuThreadExchangeStreamCaptureMode);
	TAKE(load_library, cuLibraryLoadData);
	TAKE(unload_library, cuLibraryUnload);
	TAKE(library_kernel, cuLibraryGetKernel);
	TAKE(kernel_function, cuKernelGetFunction);
	TAKE(load_data, cuModuleLoadData);
	TAKE(load_data_ex, cuModuleLoadDataEx);
	TAKE(load_fatbin, cuModuleLoadFatBinary);
	TAKE(unload_module, cuModuleUnload);
	TAKE(module_function, cuModuleGetFunction);
	TAKE(load_function, cuFuncLoad);
#undef TAKE
}

void prefetch_wake(void)
{
	speculation_write(&prefetch.events, prefetch.events + 1);
}

/* The process, or this copy of the driver in it, is at its end. */
static bool is_over(void)
{
	return speculation_read(&speculation.is_leaving) ||
	       speculation_read(&speculation.is_abandoned) ||
	       speculation_read(&speculation.verdict) > VERDICT_COMMITTED;
}

static bool is_stopped(void)
{
	return is_over() || speculation_read(&prefetch.epoch) != epoch ||
	       speculation_read(&prefetch.halts) || speculation_read(&prefetch.launched);
}

static void leave(void)
{
	quiet_end();
	speculation_leave();
}

/* Before a call of the driver: false where there may be none any more. */
static bool enter(void)
{
	if (!speculation_enter())
		return false;
	if (is_stopped()) {
		speculation_leave();
		return false;
	}
	quiet_begin(QUIET_LIBRARY);
	return true;
}

/* The same to unload something: waits while the program ends a context. */
static bool enter_to_unload(void)
{
	uint32_t events = speculation_read(&prefetch.events);

	while (speculation_enter()) {
		bool is_halted = speculation_read(&prefetch.halts);

		if (!is_halted && !is_over() && !speculation_read(&prefetch.launched)) {
			quiet_begin(QUIET_LIBRARY);
			return true;
		}
		speculation_leave();
		if (!is_halted)
			return false;
		speculation_wait(&prefetch.events, events, HALT_STEP_US);
		events = speculation_read(&prefetch.events);
	}
	return false;
}

static void end(struct prefetch_image *image)
{
	speculation_write(&image->state, PREFETCH_GONE);
	prefetch_close(image, 0);
}

/* --- loading -------------------------------------------------------------------------------------
 */

static CUresult call_load(struct prefetch_image *image)
{
	const struct image *listed = prefetch_listed(image);
	const void *code = image->source.data;
	int options[IMAGES_OPTIONS_MAX];
	void *values[IMAGES_OPTIONS_MAX];
	int jit_options[IMAGES_JIT_OPTIONS_MAX];
	void *jit_values[IMAGES_JIT_OPTIONS_MAX];
	bool has_values = listed->option_count && !(listed->flags & IMAGE_HAS_NO_VALUES);
	uint32_t jit_count = listed->jit_count;

	if (listed->form == IMAGE_WRAPPED) {
		image->wrapper = (struct fatbin_wrapper){.magic = FATBIN_WRAPPER_MAGIC,
			.version = FATBIN_WRAPPER_VERSION,
			.data = code};
		code = &image->wrapper;
	}
	for (uint32_t i = 0; i < listed->option_count; i++) {
		options[i] = (int)listed->options[i].option;
		values[i] = (void *)(uintptr_t)listed->options[i].value;
	}
	for (uint32_t i = 0; i < jit_count; i++) {
		jit_options[i] = (int)listed->jit_options[i].option;
		jit_values[i] = (void *)(uintptr_t)listed->jit_options[i].value;
	}
	switch (listed->entry) {
	case IMAGE_LIBRARY_DATA:
		return driver.load_library((CUlibrary *)&image->handle, code,
			jit_count ? jit_options : NULL, jit_count ? jit_values : NULL, jit_count,
			listed->option_count ? options : NULL, has_values ? values : NULL,
			listed->option_count);
	case IMAGE_MODULE_DATA:
		return driver.load_data((CUmodule *)&image->handle, code);
	case IMAGE_MODULE_DATA_EX:
		return driver.load_data_ex((CUmodule *)&image->handle, code, jit_count,
			jit_count ? jit_options : NULL, jit_count ? jit_values : NULL);
	default:
		return driver.load_fatbin((CUmodule *)&image->handle, code);
	}
}

static bool has_entries(const struct image *listed)
{
	switch (listed->entry) {
	case IMAGE_LIBRARY_DATA:
		return driver.load_library && driver.unload_library;
	case IMAGE_MODULE_DATA:
		return driver.load_data && driver.unload_module;
	case IMAGE_MODULE_DATA_EX:
		return driver.load_data_ex && driver.unload_module;
	default:
		return driver.load_fatbin && driver.unload_module;
	}
}

/* So that its first launch costs what the second does. */
static void load_kernel(const struct prefetch_image *image, const char *name)
{
	void *kernel, *function;

	if (!prefetch_is_library(image)) {
		if (driver.module_function &&
			!driver.module_function(&function, image->handle, name) &&
			driver.load_function)
			driver.load_function(function);
	} else if (driver.library_kernel && driver.kernel_function &&
		   !driver.library_kernel(&kernel, image->handle, name) &&
		   !driver.kernel_function(&function, kernel) && driver.load_function) {
		driver.load_function(function);
	}
}

static void load_kernels(struct prefetch_image *image)
{
	const struct image *listed = prefetch_listed(image);
	const struct image_kernel *kernels = prefetch.list.kernels + listed->kernel_first;

	for (uint32_t i = 0; i < listed->kernel_count; i++) {
		if (speculation_read(&image->is_wanted) || !enter())
			return;
		load_kernel(image, prefetch.list.text + kernels[i].name);
		leave();
	}
}

static bool load(struct prefetch_image *image)
{
	uint64_t start_us = clock_monotonic_us();
	CUresult rc;

	if (!speculation_change(&image->state, PREFETCH_WAITING, PREFETCH_LOADING))
		return false;
	if (!has_entries(prefetch_listed(image)) || !enter()) {
		end(image);
		return false;
	}
	rc = call_load(image);
	leave();
	if (rc) {
		log_debug("prefetch: image %u: the driver answers %d", image->index, rc);
		end(image);
		return false;
	}
	load_kernels(image);
	image->load_us = clock_monotonic_us() - start_us;
	speculation_write(&image->state, PREFETCH_READY);
	return true;
}

static bool read_free(size_t *ret_free)
{
	size_t total;
	CUresult rc;

	if (!enter())
		return false;
	rc = speculation.driver.memory(ret_free, &total);
	leave();
	return !rc;
}

/* Only while the program has no memory of its own there; afterwards what is left is about to be
 * asked for. */
static bool has_room(void)
{
	size_t free_now;

	if (speculation_read(&speculation.context) != CONTEXT_HELD)
		return true;
	if (!read_free(&free_now))
		return false;
	if (free_now + start_settings()->prefetch_bytes >= free_before)
		return true;
	log_info("prefetch: no room for more");
	return false;
}

/* Is the device the one that the list was chosen for? Are images loaded lazily: else each takes
 * memory for all that is in it. And is nothing compiled? */
static bool is_as_learned(void)
{
	const struct profile_section *section = situation_section();
	char model[PROFILE_MODEL_SIZE];
	int loading = 0;

	if (!section || !driver.name || driver.name(model, sizeof(model), 0) ||
		strncmp(model, section->model, sizeof(model)) ||
		quiet_variable("CUDA_FORCE_PTX_JIT"))
		return false;
	return !driver.loading_mode || (!driver.loading_mode(&loading) && loading != LOADING_EAGER);
}

static bool begin(void)
{
	int mode = CAPTURE_RELAXED;
	bool is_begun;

	epoch = speculation_read(&prefetch.epoch);
	if (start_settings()->prefetch == PREFETCH_OFF || !enter())
		return false;
	/* Another thread may be capturing: its capture is none of ours. */
	is_begun = is_as_learned() && driver.exchange_mode && !driver.exchange_mode(&mode) &&
		   !speculation.driver.set_current(speculation.handle);
	leave();
	return is_begun && prefetch_make_table(epoch) && read_free(&free_before);
}

void prefetch_load(void)
{
	uint64_t start_us = clock_monotonic_us();
	uint32_t ready = 0;

	if (!begin())
		return;
	for (uint32_t i = 0; i < prefetch.count && !is_stopped() && has_room(); i++)
		ready += load(&prefetch.images[i]);
	prefetch.last_us = clock_monotonic_us();
	log_debug("prefetch: %u of %u images after %llu us", ready, prefetch.count,
		(unsigned long long)(prefetch.last_us - start_us));
}

/* --- giving back ---------------------------------------------------------------------------------
 */

static bool has_ready(void)
{
	for (uint32_t i = 0; i < prefetch.count; i++)
		if (speculation_read(&prefetch.images[i].state) == PREFETCH_READY)
			return true;
	return false;
}

void prefetch_unload(struct prefetch_image *image)
{
	if (prefetch_is_library(image))
		driver.unload_library(image->handle);
	else if (image->epoch == speculation_read(&prefetch.epoch))
		driver.unload_module(image->handle);
}

/* A module has gone with its context. False where it is somebody's. */
static bool unload(struct prefetch_image *image)
{
	if (!enter_to_unload())
		return false;
	if (!speculation_change(&image->state, PREFETCH_READY, PREFETCH_GONE)) {
		leave();
		return false;
	}
	prefetch_unload(image);
	leave();
	prefetch_close(image, 0);
	return true;
}

void prefetch_give_back(uint64_t after_us)
{
	uint32_t count = 0;

	/* The program has just taken the context, or it is gone. */
	__atomic_store_n(&prefetch.last_us, clock_monotonic_us(), __ATOMIC_RELAXED);
	while (has_ready()) {
		uint64_t end_us = __atomic_load_n(&prefetch.last_us, __ATOMIC_RELAXED) + after_us,
			 now_us = clock_monotonic_us();
		uint32_t events = speculation_read(&prefetch.events);

		if (is_over() || speculation_read(&prefetch.launched))
			return;
		if (now_us >= end_us || speculation_read(&prefetch.epoch) != epoch)
			break;
		speculation_wait(&prefetch.events, events, end_us - now_us);
	}
	for (uint32_t i = 0; i < prefetch.count; i++)
		if (speculation_read(&prefetch.images[i].state) == PREFETCH_READY)
			count += unload(&prefetch.images[i]);
	if (count)
		log_info("prefetch: %u images are given back", count);
}
