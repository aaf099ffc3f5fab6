/* This process as a spare: a python that waits for a program (lib/spare). What is done ahead in it
 * is begun at once, and kept until a program has come. */
#pragma once

#include "profile/spare_page.h"

#include <stdbool.h>
#include <stdint.h>

/* From the constructor: maps the page where HEARTH_SPECULATE says that this is a spare. The page
 * stays for the process's life. */
void spare_begin(void);

/* Whether this is one, or was before a program came. */
bool spare_is_one(void);

/* Whether it waits for its program. */
bool spare_is_waiting(void);

/* Whether what runs here is to be learned. */
bool spare_is_learning(void);

/* Whether nothing is to be done ahead in it. */
bool spare_is_off(void);

/* The device that the user has named: true with its ordinal. */
bool spare_gpu(int *ret_gpu);

/* Whose profile counts; NULL in a process that is no spare. */
const struct identity *spare_identity(void);

/* Tells who holds it how far the work is. */
void spare_note(enum spare_ahead ahead, int device);

/* What the program is called; NULL where none has come, or where it is a text. */
const char *spare_program(void);

/* When the program came, in microseconds; 0 where none has come. */
uint64_t spare_adopted_monotonic_us(void);
uint64_t spare_adopted_realtime_us(void);
