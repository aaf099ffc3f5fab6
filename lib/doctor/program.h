/* One executable file: would the loader preload anything into it, and would what it does afterwards
 * reach libhearth.so? */
#pragma once

#include "doctor/scene.h"
#include "report/findings.h"

/* Whether exec of this file by the scene's user is "secure" (AT_SECURE): the loader then drops
 * LD_PRELOAD, also from the environment that its children inherit. ret_why is "setuid", "setgid" or
 * "file-capabilities". */
bool program_is_secure(const struct scene *scene, const char *path, const char **ret_why);

/* Judges the file; adds findings. Returns whether a preload takes effect in it. */
bool program_judge(const struct scene *scene, const char *path, struct findings *findings);
