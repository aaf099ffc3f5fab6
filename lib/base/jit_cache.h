/* Where the driver keeps the PTX that it has compiled, and whether it can (CUDA programming guide,
 * CUDA_CACHE_DISABLE and CUDA_CACHE_PATH). Libc only. */
#pragma once

#include <limits.h>

enum jit_cache {
	JIT_CACHE_UNKNOWN, /* nobody has looked */
	JIT_CACHE_GOOD,
	JIT_CACHE_OFF,     /* by CUDA_CACHE_DISABLE */
	JIT_CACHE_NOWHERE, /* neither HOME nor CUDA_CACHE_PATH is set */
	JIT_CACHE_LOCKED,  /* it cannot be written */
	JIT_CACHE_COUNT
};

/* What is looked at: the variables' values, NULL where unset; and how access(2) is asked there,
 * which answers 0 or -errno. */
struct jit_cache_view {
	const char *disabled, *path, *home;
	int (*access)(const void *context, const char *path, int mode);
	const void *context;
};

struct jit_cache_place {
	char path[PATH_MAX];   /* the cache; it need not be there yet */
	char folder[PATH_MAX]; /* itself, or the nearest folder above that is there */
	int error;             /* why that cannot be written, -errno; 0 where it can */
};

/* The place is set for JIT_CACHE_GOOD and JIT_CACHE_LOCKED alone. */
enum jit_cache jit_cache_look(const struct jit_cache_view *view, struct jit_cache_place *ret_place);
