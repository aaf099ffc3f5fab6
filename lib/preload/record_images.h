/* Recording which images the program loads and which kernels it takes from them, for its profile.
 * Only in the process that the constructor ran in, and only while learning goes on: some seconds
 * after the latest new thing, and as far as a list goes. Afterwards nothing is done here, and the
 * entries for kernels lead straight to the driver. */
#pragma once

#include "preload/image_call.h"

/* The call succeeded and gave `handle`, after `took_us` in the driver (0: it was served with what
 * was loaded ahead). `call` has been looked at. Keeps errno. */
void record_images_load(struct image_call *call, const void *handle, uint64_t took_us);

/* A kernel of that name was taken from a library, or a function from a module; `is_function` where
 * it is one of a context. */
void record_images_kernel(
	const void *owner, const void *kernel, const char *name, bool is_function);

/* A kernel was made a function of a context. */
void record_images_function(const void *kernel);

/* The program sets a limit that is settled by the first code that comes into the context: nothing
 * that it loads is to be loaded ahead. */
void record_images_late(void);

/* False once recording is over; and once it is over for kernels, of which there were too many. */
bool record_images_is_on(void);
bool record_images_takes_kernels(void);

/* At the program's end: what was not written yet. */
void record_learn_end(void);
