/* Becoming invisible in a process that Hearth cannot help: later lookups of libcuda.so.1,
 * libcuda.so and of every entry find what they would have found without us. */
#pragma once

/* Takes our two names and our symbols out of the loader's sight. Does nothing where a loaded object
 * NEEDs libcuda.so.1 or libcuda.so, or where a constructor has opened it: they are bound to us
 * already, and get plain pass-through.
 * Returns 0, or STEP_ASIDE_BOUND. */
#define STEP_ASIDE_BOUND 1
int step_aside(void);
