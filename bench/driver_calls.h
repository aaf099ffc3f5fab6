/* The few driver entries that the benches call, found in one library by dlsym. */
#pragma once

#include <stddef.h>

struct driver_calls {
	int (*init)(unsigned flags);
	int (*retain)(void **ret_context, int device);
	int (*set_current)(void *context);
	int (*get_current)(void **ret_context);
	int (*allocate)(unsigned long *ret_address, size_t bytes);
	int (*copy_in)(unsigned long to, const void *from, size_t bytes);
	int (*module_load)(void **ret_module, const void *image);
	int (*get_function)(void **ret_function, void *module, const char *name);
	int (*launch)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
		unsigned shared, void *stream, void **arguments, void **extra);
	int (*synchronize)(void);
};

/* Opens `path` and finds them all; ends the bench with a message where it cannot. */
void driver_calls_open(const char *path, struct driver_calls *ret_calls);
