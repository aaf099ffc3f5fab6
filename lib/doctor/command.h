/* Would libhearth.so get to see what a command does with the driver? */
#pragma once

#include "doctor/scene.h"
#include "report/findings.h"

/* Follows the words as the kernel and the usual wrappers would: PATH, scripts' first lines, env,
 * timeout, sudo and so on, down to the program, and judges that. Taken is what LD_PRELOAD holds
 * now where libhearth.so is in it, else what `hearth run` would set. Adds findings; returns 0 with
 * ret_is_intercepted, or -ENOMEM. */
int command_examine(const struct scene *scene, char *const *words, struct findings *findings,
	bool *ret_is_intercepted);
