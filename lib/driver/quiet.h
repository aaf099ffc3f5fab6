/* A quiet copy: a copy of the driver whose own imports are redirected, so that one thread can be
 * inside it without disturbing the program.
 *
 * On that thread (between quiet_begin and quiet_end) the copy
 *   - reads the environment from a snapshot, since getenv beside the program's setenv crashes, and
 *     every read is recorded: what was read is what must still hold when the work is committed;
 *   - changes no environment: an attempt is recorded and makes the work invalid;
 *   - has its exit handlers held back, until the program asks for what was made ahead or ends;
 *   - has its descriptors noted (driver/quiet_files.h);
 *   - is answered without the loader's lock where it asks the loader for what is already there
 *     (measured on 580.159.04: cuInit calls dlopen(NULL) and dlvsym eight times each and
 *     dlopen("libcuda.so.1") once).
 * On every other thread the copy's imports do what they always did. One quiet copy per process. */
#pragma once

#include "driver/copy.h"

#include <stdbool.h>

/* What the reads of a stage were made for. */
enum quiet_stage { QUIET_INIT, QUIET_CONTEXT, QUIET_LIBRARY, QUIET_STAGES };

/* Takes the snapshot of the environment: call it on a thread of the program, where the program
 * itself might read its environment. 0 or a negative errno. */
int quiet_snapshot(void);

/* A variable in the snapshot, or NULL. */
const char *quiet_variable(const char *name);

/* Redirects the imports of `copy`; after quiet_snapshot. Takes no lock. Other threads may be in the
 * copy already: for them nothing changes. `before_exits` (may be NULL) is
 * called before any exit handler or destructor of the copy runs, perhaps several times. Returns 0,
 * -ENOEXEC where the driver does not import getenv through a slot (then nothing may run on a second
 * thread), or another negative errno. */
int quiet_prepare(const struct driver_copy *copy, void (*before_exits)(void));

/* What the quiet thread calls before each of the copy's requests to the kernel (ioctl). It runs
 * inside the driver, which may hold locks of its own. */
void quiet_before_requests(void (*function)(void));

/* Is the calling thread the quiet one? */
bool quiet_is_thread(void);

/* Is it that one, or a thread that the copy has begun on it, while that is inside? */
bool quiet_is_working(void);

/* For which stage the quiet thread works. */
enum quiet_stage quiet_stage(void);

/* The calling thread is the one; its reads count for `stage` until the next call. */
void quiet_begin(enum quiet_stage stage);

/* The calling thread is done: from now on nothing is answered from the snapshot. */
void quiet_end(void);

/* The exit handlers that were held back are registered, now and in future quiet_end: where the
 * program itself calls cuInit, so that they stand in libc's order where they natively would, or at
 * its end. */
void quiet_register_exits(void);

/* Registers them, and says whether they are to run. Until this is said, they run only if the copy's
 * descriptors still are the same files: a driver whose descriptors are gone would wait for its own
 * threads for ever. (Where the program itself has initialised it, that is the program's affair.) */
void quiet_choose_exits(bool are_run);

/* How many threads the copy has begun on the quiet thread. */
unsigned int quiet_thread_count(void);

/* Do all variables that `stage` read still have the values it saw? Reads the live environment: call
 * it where the driver itself would. False also where too much was read to be remembered, or where
 * the copy tried to change the environment. `ret_name` (may be NULL) gets the first variable that
 * differs, or NULL. */
bool quiet_is_valid(enum quiet_stage stage, const char **ret_name);

/* The reads of a stage, for the self-test and for tests. NULL past the last one. */
const char *quiet_read_name(enum quiet_stage stage, unsigned int index);
