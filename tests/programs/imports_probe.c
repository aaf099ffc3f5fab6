/* A small library that reads one environment variable: what the tests of lib/driver/imports and
 * lib/driver/copy open, copy and redirect. Its counter shows which copy answered. */
#include <stdlib.h>

const char *probe_read(const char *name);
int probe_count(void);

static int calls;

__attribute__((visibility("default"))) const char *probe_read(const char *name)
{
	calls++;
	return getenv(name);
}

__attribute__((visibility("default"))) int probe_count(void)
{
	return calls;
}
