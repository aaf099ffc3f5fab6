/* What the speculative thread and the program's threads share about the one speculation of this
 * process.
 *
 *   phase (the thread):     NONE -> STARTED -> INIT -> INIT_DONE -> CONTEXT -> ENDED
 *                                       +----------> ENDED  (the program was first)
 *   verdict (the program):  OPEN -> CLAIMING -> COMMITTED
 *                             |        +------> SQUASHED, CANCELLED
 *                             +---------------> CANCELLED   (it called before there was a thread)
 *   context (both):         NONE -> BUSY <-> HELD
 *                             |       +----> TAKEN          the reference is the program's
 *                             +-------+----> GIVEN_UP       released, or never made
 *   place (the thread):     OUTSIDE <-> INSIDE              in the driver, or opening it
 *                              +------> ENDING              may still be in the driver's own
 *                                                           ends of threads, until it is gone
 *
 * Each is one futex word. The thread enters INIT and then looks at the verdict; the program writes
 * CLAIMING and then looks at the phase: so one of them always sees the other. Whoever turned the
 * context to BUSY has it for itself: to make it, to hand it over, to release it. Likewise the
 * thread enters its place and then looks whether the program is leaving, which says so and then
 * looks at the place: no exit handler of the driver runs while the thread is inside. Waits have a
 * limit. */
#pragma once

#include "driver/abi.h"
#include "profile/decide.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* How many versions cuCtxCreate has. */
#define CREATE_VERSIONS 4

enum phase { PHASE_NONE, PHASE_STARTED, PHASE_INIT, PHASE_INIT_DONE, PHASE_CONTEXT, PHASE_ENDED };
enum { VERDICT_OPEN, VERDICT_CLAIMING, VERDICT_COMMITTED, VERDICT_SQUASHED, VERDICT_CANCELLED };
enum { CONTEXT_NONE, CONTEXT_BUSY, CONTEXT_HELD, CONTEXT_TAKEN, CONTEXT_GIVEN_UP };
enum { PLACE_OUTSIDE, PLACE_INSIDE, PLACE_ENDING };

/* The entries of the copy that the thread initialises, whatever the driver is later on. */
struct speculation_driver {
	CUresult (*init)(unsigned int flags);
	CUresult (*count)(int *ret_count);
	CUresult (*attribute)(int *ret_value, int attribute, CUdevice device);
	CUresult (*retain)(CUcontext *ret_context, CUdevice device);
	CUresult (*release)(CUdevice device);
	CUresult (*set_flags)(CUdevice device, unsigned int flags);
	CUresult (*set_current)(CUcontext context);
	CUresult (*memory)(size_t *ret_free, size_t *ret_total);
	CUresult (*pop)(CUcontext *ret_context);
	CUresult (*destroy)(CUcontext context);
	uintptr_t create[CREATE_VERSIONS]; /* cuCtxCreate_vN at N - 1; 0 = has none */
};

struct speculation {
	pid_t pid;    /* whose; a fork child finds its parent's here */
	pid_t thread; /* the thread's id in the kernel; written before it enters anything */
	uint32_t phase;
	uint32_t verdict;
	uint32_t context;
	uint32_t place;
	uint32_t is_leaving; /* the program is at its exit: begin nothing more */
	uint32_t is_loading; /* the thread is in the loader: a fork waits for that */
	/* A squash has begun, perhaps while the thread is inside the driver: nothing of it may
	 * touch what is the driver from now on. */
	uint32_t is_abandoned;
	/* Results; written before the phase that tells of them. */
	CUresult init_rc;
	uint64_t init_us;
	CUresult context_rc;
	uint64_t context_us;
	struct profile_context wanted; /* what was made, or is being made */
	CUcontext handle;
	enum decide_what what;
	struct speculation_driver driver;
};

extern struct speculation speculation;

static inline uint32_t speculation_read(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

/* Stores and wakes whoever waits for the word. */
void speculation_write(uint32_t *word, uint32_t value);

/* Replaces `from` by `to`; false where the word holds something else. Wakes likewise. */
bool speculation_change(uint32_t *word, uint32_t from, uint32_t to);

/* Waits while the word is `value`, at most that long. False where it still is. */
bool speculation_wait(const uint32_t *word, uint32_t value, uint64_t limit_us);

/* Is this process the one that speculates, and has it begun? */
bool speculation_is_ours(void);

/* The thread, around whatever it does in the driver. False where the program is at its exit: then
 * it must not go in. */
bool speculation_enter(void);
void speculation_leave(void);

/* The thread's last words: what the driver does at the end of a thread comes after them. Where the
 * program is at its exit this does not return. */
void speculation_end_thread(void);

/* Waits until the thread is in the driver no more, at most that long. False where it still is. On
 * the thread itself: true. */
bool speculation_wait_outside(uint64_t limit_us);
