/* A plugin that opens libraries itself, so that its own search path counts. */
#include <dlfcn.h>

__attribute__((visibility("default"))) void *plugin_open(const char *name, int flags);

void *plugin_open(const char *name, int flags)
{
	void *handle = dlopen(name, flags);

	/* Not a tail call: the loader asks who called it. */
	__asm__ volatile("" ::: "memory");
	return handle;
}
