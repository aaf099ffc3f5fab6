/* What a preload list (LD_PRELOAD, /etc/ld.so.preload) means for a program. */
#pragma once

#include "doctor/scene.h"
#include "report/findings.h"

enum preload_state {
	PRELOAD_NONE,   /* libhearth.so is not in it */
	PRELOAD_FIRST,  /* it is, and answers to the name libcuda.so.1 */
	PRELOAD_BEHIND, /* it is, but another library answers to that name before it */
	PRELOAD_BROKEN, /* it is, but the loader will not take it */
};

/* Judges every entry of the list as the loader finds it with this LD_LIBRARY_PATH (or NULL). A NULL
 * list is an empty one. Adds findings. */
enum preload_state preload_judge(const struct scene *scene, const char *list,
	const char *library_path, struct findings *findings);

/* /etc/ld.so.preload's list: it counts for every program, static ones and those of another libc
 * excepted. To be freed; NULL where there is none. */
char *preload_system_list(const struct scene *scene);

/* Without a command: what `hearth run` would set here, and whether it works. Returns 0 or -ENOMEM.
 */
int preload_examine(const struct scene *scene, struct findings *findings);
