/* Makes the programs need libdl and librt, where the C library has the loader's functions and
 * shm_open there. lib/driver refers to them weakly and by version, which does not make a linker
 * look for them. Nothing runs here. */
#include <dlfcn.h>
#include <sys/mman.h>

extern void *const keep_dl, *const keep_rt;
void *const keep_dl = (void *)dlopen;
void *const keep_rt = (void *)shm_open;
