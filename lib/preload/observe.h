/* What this run shows about the program, for its profile. Only a process that looked up cuInit
 * writes to the state folder, and only the one that the constructor ran in: not its fork children.
 */
#pragma once

#include "driver/abi.h"
#include "profile/profile.h"

#include <stdbool.h>
#include <stdint.h>

/* From the constructor. */
void observe_begin(void);

/* cuInit was looked up, in this environment; the first time counts. */
void observe_lookup(char *const *environment);

/* The program is about to call cuInit: what it has done so far. The first time counts. */
void observe_call(void);

/* The program's cuInit succeeded; it took so long, whoever waited (0: not known). */
void observe_init(uint64_t took_us);

/* The program has that context. The first one is what the profile speculates on; the
 * run is then written down. */
void observe_context(const struct profile_context *context, uint64_t took_us);

/* Something made ahead was undone. */
void observe_squash(void);

/* At the process's end: what was not written down yet. */
void observe_end(void);

/* Is this the process that is observed? One getpid. */
bool observe_is_on(void);

/* Has the program had a context in it? */
bool observe_has_context(void);

/* The section that this run belongs to: the driver's build, and the model of the first visible GPU,
 * "" where it has none. False where there is no driver, or the program has not called cuInit. */
bool observe_driver(uint8_t ret_build_id[PROFILE_BUILD_SIZE], char ret_model[PROFILE_MODEL_SIZE]);

/* What the profile says a cuInit takes; 0 = not known. */
uint64_t observe_learned_init_us(void);
