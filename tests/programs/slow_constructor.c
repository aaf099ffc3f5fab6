/* A library whose constructor, which runs under the loader's lock, takes its time: SLOW_MS. */
#include <time.h>

#define SLOW_MS 700

__attribute__((constructor)) static void wait_a_while(void)
{
	nanosleep(&(struct timespec){.tv_nsec = SLOW_MS * 1000000L}, NULL);
}
