/* What the programs with a stand-in runtime do on a device: add two arrays, check the sums. Prints
 * the same lines each time, each behind `who`. Returns 0, or the first error. */
#pragma once

int work_run(const char *who, int device);
