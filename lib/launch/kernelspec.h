/* Jupyter's kernelspecs: finding one, and wrapping what it starts. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#define KERNELSPEC_NAME "kernel.json"
#define KERNELSPEC_BACKUP "kernel.json.before-hearth"

/* The folder of the kernelspec `name`, as Jupyter would find it: JUPYTER_PATH; the environment that
 * is active, the one that we lie in, and the one of the `jupyter` in PATH; the user's; the
 * machine's. The name's case does not matter. With `or_backup` also a folder from which kernel.json
 * has gone while it was wrapped. 0; -ENOENT; -EINVAL for what cannot be a kernel's name;
 * -ENAMETOOLONG. */
int kernelspec_find(const char *name, bool or_backup, char ret_folder[PATH_MAX]);

/* The prefix of the `jupyter` in PATH, links followed: /x of /x/bin/jupyter. False where there is
 * none. */
bool kernelspec_jupyter_prefix(char ret_prefix[PATH_MAX]);

/* Has the kernelspec in `folder` start its kernel by `hearth run`, and keeps the file as it was
 * beside it. With `imports`, "MODULE,...", it is started by way of a spare that has imported them.
 * Files are written beside their places and renamed. 0; KERNELSPEC_SAME where that is so already; a
 * wrap of another hearth, or with other imports, is replaced; -EPROTO where kernel.json is none;
 * -errno. */
#define KERNELSPEC_SAME 1
int kernelspec_wrap(const char *folder, const char *hearth, const char *imports);

/* Puts back what was there: byte for byte where nothing but we has changed it; where it was edited
 * while it was wrapped, KERNELSPEC_EDITED, and only what we have put in is taken out again. Where
 * kernel.json has been written anew since, or has gone, that stays, and only what was kept goes. 0;
 * KERNELSPEC_SAME where nothing was wrapped; -errno. */
#define KERNELSPEC_EDITED 2
int kernelspec_unwrap(const char *folder);
