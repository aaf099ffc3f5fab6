/* The descriptors that a quiet copy opens on its thread: what a fork child of a program that has
 * not used the driver yet must not have, and what must still be the same files when the work is
 * committed. */
#pragma once

#include "driver/quiet.h"

#include <stdbool.h>

/* For the hooks of the copy's imports (driver/quiet_opens.h). Around each of their calls: the turn,
 * without which the table does not change. */
void quiet_files_begin(void);
void quiet_files_end(void);

/* A descriptor that was opened, with the turn: where that was for the speculation it is noted,
 * under the high number that it gets and that is returned, so that the program's next one has the
 * number that it would have had. Negative ones are handed through. Keeps errno. */
int quiet_files_add(int fd);

/* Noted as it is; no longer noted; and whether a socket may have no name now. With the turn. */
void quiet_files_note(int fd);
void quiet_files_forget(int fd);
bool quiet_files_are_names_refused(void);

/* Are all descriptors that were opened and not closed since still the files they were? */
bool quiet_files_are_valid(void);

/* Closes those that were opened in this stage and later ones, if they still are the same files: for
 * a fork child, which natively would have none of them. Async-signal-safe. */
void quiet_files_close(enum quiet_stage from);

/* Puts eventfds that never have anything to say where the program has closed what the copy's
 * threads wait for, so that they wait on. Not where the program has a file of its own there. */
void quiet_files_silence(void);

/* From now on the quiet thread can give no socket a name: another copy is about to need it. */
void quiet_files_refuse_names(void);

/* Where copy_retire has put an eventfd over a socket, that is right from now on. */
void quiet_files_accept_retired(void);

/* Around a fork: the quiet thread waits before it opens anything, and what it is just opening is
 * waited for, at most 200 ms; so the child knows all that it has to close. */
void quiet_files_before_fork(void);
void quiet_files_after_fork(bool is_child);

/* How many are open, as far as the hooks saw. */
unsigned int quiet_files_count(void);
