/* Arrays on the heap that grow. Not for the user's process. */
#pragma once

#include <stdint.h>
#include <stdlib.h>

/* realloc to `count` items of `size` bytes; NULL, with the old array as it was, where that is too
 * much. What glibc has as reallocarray from 2.26 on, which is younger than the floor. */
static inline void *array_resize(void *array, size_t count, size_t size)
{
	if (size && count > SIZE_MAX / size)
		return NULL;
	return realloc(array, count * size);
}
