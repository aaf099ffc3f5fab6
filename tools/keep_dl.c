/* Makes `hearth` need libdl, where the C library has the loader's functions there. lib/driver
 * refers to them weakly and by version, which does not make a linker look for them. Nothing runs
 * here. */
#include <dlfcn.h>

extern void *const keep_dl;
void *const keep_dl = (void *)dlopen;
