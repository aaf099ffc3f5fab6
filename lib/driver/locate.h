/* Where the real driver is: the file that dlopen("libcuda.so.1") would have found without us.
 *
 * Order: HEARTH_DRIVER; then the caller's RPATH (and its loaders'), LD_LIBRARY_PATH, the caller's
 * RUNPATH; then ld.so.cache; then the loader's default folders; and last the folders where
 * container toolkits, WSL, NixOS and forward-compatibility packages put it. A file that the loader
 * would pass over (another architecture, no ELF file) is passed over, and so are we ourselves. A
 * stub library is not: what the loader would find first is what the program would have got. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define LOCATE_NAME "libcuda.so.1"

struct locate_request {
	const char *driver; /* HEARTH_DRIVER or NULL; one that cannot be a driver is passed over */
	const void *caller; /* an address in the object that asks; NULL = the program itself */
};

/* Writes the driver's absolute path. 0, or -ENOENT where there is none. Takes the loader's lock
 * for moments; allocates nothing. */
int locate_driver(const struct locate_request *request, char ret_path[PATH_MAX]);

/* Whether the machine shows any sign of an NVIDIA driver in its kernel: device nodes of a GPU, of
 * WSL's or of Tegra's. A few access() calls. */
bool locate_has_device(void);

/* Whether a file could be a driver for this process: a 64-bit x86 shared object that is not Hearth.
 * 0, -ENOEXEC, -ELOOP (it is Hearth itself), or -errno of open. */
int locate_check(const char *path);

/* Whether HEARTH_DRIVER (NULL = unset) names a driver: by absolute path, and it can be one. */
bool locate_is_given(const char *driver);

/* The lists behind both, for `hearth doctor`, which looks at other roots too: entry i of the
 * folders that come after the loader's own, and of the signs of a driver; NULL past the end. */
const char *locate_folder(size_t i);
const char *locate_sign(size_t i);
