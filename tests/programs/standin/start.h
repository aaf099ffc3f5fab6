/* The stand-in runtime's way to the driver. */
#pragma once

#include <stdint.h>

/* Finds and initialises the driver at the first call of any kind; the outcome stays. */
int start_driver(void);

/* The driver's answer to (public name, version, flags) of the list of requests, or NULL. */
void *start_entry(const char *name, int version);

/* Calls an entry of the list with machine words; 36 where the driver lacks it. */
#define DRIVER(name, version, ...)                                                                 \
	start_call(start_entry(#name, version), (const uintptr_t[12]){__VA_ARGS__})
int start_call(void *entry, const uintptr_t w[12]);

int start_device_count(void);
