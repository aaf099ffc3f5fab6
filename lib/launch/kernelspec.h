/* Jupyter's kernelspecs: finding one, and wrapping what it starts. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#define KERNELSPEC_NAME "kernel.json"
#define KERNELSPEC_BACKUP "kernel.json.before-hearth"

/* The folder of the kernelspec `name`, as Jupyter would find it: JUPYTER_PATH; the environment that
 * is active, and the one that we lie in; the user's; the machine's. 0; -ENOENT; -EINVAL for what
 * cannot be a kernel's name; -ENAMETOOLONG. */
int kernelspec_find(const char *name, char ret_folder[PATH_MAX]);

/* Has the kernelspec in `folder` start its kernel by `hearth run`, and keeps the file as it was
 * beside it. With `imports`, "MODULE,...", it is started by way of a spare that has imported them.
 * Files are written beside their places and renamed. 0; KERNELSPEC_SAME where that is so
 * already; -EPROTO where kernel.json is none; -errno. */
#define KERNELSPEC_SAME 1
int kernelspec_wrap(const char *folder, const char *hearth, const char *imports);

/* Puts back what was there, byte for byte; where kernel.json has been written anew since, it stays,
 * and only what was kept goes. 0; KERNELSPEC_SAME where nothing was wrapped; -errno. */
int kernelspec_unwrap(const char *folder);
