/* The parts of driver_steps, a program that does what its arguments say. */
#pragma once

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A program that hangs is ended by SIGALRM. */
#define STEPS_LIMIT_S 40

/* The driver's entry, looked up when it is first needed; ends the program where there is none. */
void *steps_entry(const char *symbol);

/* A call with machine words for arguments. */
#define STEPS_CALL(symbol, ...)                                                                    \
	((int (*)(uint64_t, ...))steps_entry(#symbol))((uint64_t)__VA_ARGS__)

/* A step that is about the driver; 0 where it is not. The others are about images, and many steps
 * at once. */
int steps_driver(const char *step, const char *value);
int steps_images(const char *step, const char *value);
int steps_random(const char *step, const char *value);

/* How many images the opened library has; how many were loaded so far. */
int steps_image_count(void);
int steps_slot_count(void);

/* The context that they were loaded into has ended. */
void steps_forget_modules(void);
