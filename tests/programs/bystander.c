/* A preloaded library of somebody else's, as an allocator would be: says that it is there. */
#include <stdlib.h>

__attribute__((constructor)) static void start(void)
{
	setenv("BYSTANDER", "loaded", 1);
}
