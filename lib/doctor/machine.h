/* The GPU side of the machine: driver, device nodes, persistence mode, WSL2, Jetson. */
#pragma once

#include "doctor/scene.h"
#include "report/findings.h"

enum machine_driver {
	MACHINE_DRIVER,  /* found, or named by HEARTH_DRIVER */
	MACHINE_NO_SIGN, /* no kernel module, no device */
	MACHINE_NO_FILE, /* a sign of one, but no libcuda.so.1 */
};

/* Whether libhearth.so would find a driver here; else it steps aside. ret_path (may be NULL) is to
 * be freed, and NULL without one. */
enum machine_driver machine_find_driver(const struct scene *scene, char **ret_path);

/* WSL2 (/dev/dxg), or Jetson (nvmap, nvhost): calls are passed through and recorded, no more. NULL
 * on an ordinary machine. */
const char *machine_special(const struct scene *scene);

/* Persistence and compute mode of each GPU, as this nvidia-smi says, within 5 s. */
void machine_ask_modes(const char *nvidia_smi, struct findings *findings);

void machine_examine(const struct scene *scene, struct findings *findings);
