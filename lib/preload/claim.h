/* The program's own calls meet what was made ahead: validate, then commit or squash. */
#pragma once

#include "driver/abi.h"
#include "driver/quiet.h"

#include <stdbool.h>
#include <stdint.h>

/* Notes what must be the same at a commit: who the process is, its root folder, its processors. */
void claim_note_process(void);

enum claim {
	CLAIM_NOTHING,   /* make the real call */
	CLAIM_COMMITTED, /* it is done: CUDA_SUCCESS */
	CLAIM_SQUASHED,  /* make the real call; another copy is the driver now */
};

/* The program calls cuInit(flags). Waits for a speculation in progress, at most about a second.
 * `ret_hidden_us` gets what was done ahead, where it was committed. Also in fork children of a
 * program that speculates. */
enum claim claim_init(unsigned int flags, uint64_t *ret_hidden_us);

/* The program asks for something that no copy of the driver can be replaced after: nothing is ahead
 * from now on. */
void claim_end(const char *reason);

/* In a fork child of a process whose guess was not claimed: a copy of its own is the driver from
 * now on. Elsewhere it does nothing. */
void claim_child(void);

/* Has cuInit been done ahead in this process, and does the program not know? One in progress is
 * waited for, about a second at most. */
bool claim_is_ahead(void);

/* The program retains a primary context. CLAIM_COMMITTED: it gets the one made ahead, whose
 * reference is its own from now on; CLAIM_SQUASHED: make the real call, one that was made ahead has
 * been undone. */
enum claim claim_primary(CUdevice device, CUcontext *ret_handle, uint64_t *ret_hidden_us);

/* The program calls cuCtxCreate, of that version (1 to 4), with flags alone. CLAIM_COMMITTED: it
 * gets exactly that context, made ahead; it is current now. */
enum claim claim_created(uint32_t version, unsigned int flags, CUdevice device,
	CUcontext *ret_handle, uint64_t *ret_hidden_us);

/* The program asks for a primary context's state: true where one is held ahead, which it must not
 * see: then the answer is inactive with `*ret_flags`. Ask once more after the driver has said that
 * it is active: it may have come to be between the two. */
bool claim_is_hidden(CUdevice device, unsigned int *ret_flags);

/* The program sets flags; true where they are what the held context was made with, and so nothing
 * is to be done. Else what is held is released first, and claim_note_flags follows the driver's
 * success. */
bool claim_has_flags(CUdevice device, unsigned int flags);
void claim_note_flags(CUdevice device, unsigned int flags);

/* The program is about to do something else with that device's primary context: what is held ahead
 * there is released first. */
void claim_yield(CUdevice device);

/* Between the claims: NULL, or what is not as it was when that stage's work was done; the thread is
 * told that what it does is wanted no more; another copy becomes the driver (where none can be had
 * the old one stays, and the program runs with what that copy saw). */
const char *claim_why_invalid(enum quiet_stage stage);
void claim_abandon(void);
void claim_replace_driver(void);

/* For the speculative thread: the release of what it made, after which the flags are the program's;
 * and the same for what is held, true where it was. */
void claim_release(void);
bool claim_give_up(void);
