/* Limits of a context (CUDA Driver API, "Context Management", cuCtxSetLimit). Runs in the user's
 * program on any thread. Some are settled when code comes into the context (CUDA C++ Programming
 * Guide, "Heap Memory Allocation"): so none may be there that the program has not asked for. */
#include "preload/handlers.h"
#include "preload/prefetch.h"
#include "preload/record_images.h"
#include "preload/route.h"

#include <stdbool.h>

/* CUlimit */
enum { STACK_SIZE, PRINTF_FIFO_SIZE, MALLOC_HEAP_SIZE, RUNTIME_SYNC_DEPTH, RUNTIME_LAUNCH_COUNT };

static bool is_settled_by_code(int limit)
{
	return limit >= PRINTF_FIFO_SIZE && limit <= RUNTIME_LAUNCH_COUNT;
}

CUresult handle_cuCtxSetLimit(int limit, size_t value)
{
	CUresult (*real)(int, size_t) = (CUresult(*)(int, size_t))route_real(ROW_cuCtxSetLimit);

	if (is_settled_by_code(limit)) {
		record_images_late();
		prefetch_undo();
	}
	return real(limit, value);
}
