/* Numbers in text, in ASCII alone. Not strtoul: newer headers give it a symbol version that
 * libhearth.so may not need, and have it read binary digits too. */
#pragma once

#include <stdint.h>

/* The digits at *at; 0 where there are none, UINT64_MAX where it is larger. *at is left behind the
 * last one. */
uint64_t number_decimal(const char **at);
/* The same with lower-case digits, as the kernel prints them. */
uint64_t number_hex(const char **at);
