/* HEARTH_CTX=primary: what cuCtxCreate gives is the device's primary context, retained once more,
 * so that a program that uses both has one context and not two. Where it differs from a context of
 * its own: lib/README.md, "cuCtxCreate, routed". */
#pragma once

#include "preload/claim.h"

/* Is cuCtxCreate with these flags, on this device, to be routed? What the driver would refuse is
 * not: it says so itself. */
bool routed_is_wanted(unsigned int flags, CUdevice device);

/* cuCtxCreate: retains the primary context, which may be there ahead (`ret_claim`, `ret_hidden_us`
 * as in claim_primary), and pushes it. The driver's code. */
CUresult routed_create(CUcontext *ret_context, unsigned int flags, CUdevice device,
	enum claim *ret_claim, uint64_t *ret_hidden_us);

/* One created context less, if that is one: its device, whose primary context is to be released
 * once; else -1. Pops it where it is the calling thread's current one, as cuCtxDestroy does. */
CUdevice routed_end(CUcontext context);

/* Has that been the handle of a created context, and on which device? */
bool routed_was(CUcontext context, CUdevice *ret_device);

/* How many of the references on the device's primary context are created contexts. */
int32_t routed_count(CUdevice device);
