/* Prefetch: what the program loaded into the driver in its latest run is loaded ahead on the
 * speculative thread, and handed to the program's matching calls.
 *
 * An image is, by one futex word,
 *
 *   WAITING -> LOADING -> READY -> TAKEN    the program's: it was handed over, once
 *      |          +---> GONE  |             it could not be loaded
 *      |                      +---> GONE    nobody asked: unloaded
 *      +-------> SKIPPED                    the program came first, and loads it itself
 *
 * The thread turns WAITING to LOADING and LOADING to what follows; whoever turns READY to something
 * else has the image for itself. All that is there belongs to an epoch: the end of the context that
 * the thread works in begins the next one, and nothing of an earlier one is handed over.
 *
 * The thread goes into the driver for one call at a time (speculation_enter), and then looks
 * whether it still may; whoever forbids it does so first and then waits until it is outside. */
#pragma once

#include "driver/abi.h"
#include "preload/image_call.h"

#include <stdbool.h>
#include <stdint.h>

/* On the speculative thread. */

/* Notes the entries of the copy of the driver that the thread works in. */
void prefetch_take_entries(void);

/* Loads ahead what the profile lists, in its order, until the program's first launch; after the
 * context was made. */
void prefetch_load(void);

/* Waits for the program to ask, and unloads what it has not asked for in that time. */
void prefetch_give_back(uint64_t after_us);

/* On the program's threads. */

/* The program loads that image (image_call_look has been called): true where it gets the one that
 * was loaded ahead; `ret_handle` is its library or module. One in progress is waited for. */
bool prefetch_claim(struct image_call *call, void **ret_handle, uint64_t *ret_hidden_us);

/* Is there anything to hand over? Costs a load. */
bool prefetch_is_there(void);

/* The program is about to do what natively nothing of it would be there for: what it has not asked
 * for is unloaded, and nothing more is loaded. Not after its first launch. */
void prefetch_undo(void);

/* The program has loaded an image, itself or by getting one that was loaded ahead; how many it has
 * of both kinds, and of the latter. */
void prefetch_count(bool is_handed_over);
void prefetch_counts(uint32_t *ret_asked, uint32_t *ret_adopted);

/* The program has unloaded that library. */
void prefetch_unloaded(CUlibrary library);

/* The program is about to launch for the first time: nothing is loaded ahead beside running
 * kernels. What is in flight is waited for. */
void prefetch_launching(void);

/* The context that the thread works in is about to end: waits for the thread's call in flight, at
 * most that long, and ends the epoch; until prefetch_resume the thread calls nothing. False where
 * it is still inside. */
bool prefetch_halt(uint64_t limit_us);
void prefetch_resume(void);

/* Is that the context that the thread worked in, and is it the program's by now? A created one by
 * its handle, a primary one by its device. */
bool prefetch_is_in(CUcontext context);
bool prefetch_is_on(CUdevice device);
