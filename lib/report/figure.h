/* Figures as people read them. */
#pragma once

#include <stdint.h>

#define FIGURE_SIZE 32

/* "4 us", "0.31 ms", "9.1 ms", "115 ms", "12.3 s": no more digits than mean something. */
const char *figure_time(uint64_t us, char ret_text[FIGURE_SIZE]);

/* Milliseconds with two digits behind the point and no unit, for columns: "2741.13". */
const char *figure_ms(uint64_t us, char ret_text[FIGURE_SIZE]);

/* "528 MiB", "1.5 GiB". */
const char *figure_size(uint64_t bytes, char ret_text[FIGURE_SIZE]);

/* Median (the mean of the middle two of an even count); sorts `values`. Count at least 1. */
uint64_t figure_median(uint64_t *values, unsigned count);
