/* The GPU side of the machine: driver, device nodes, persistence mode, WSL2, Jetson. */
#pragma once

#include "doctor/findings.h"
#include "doctor/scene.h"

/* Whether libhearth.so would see a sign of an NVIDIA driver here, or was told one by HEARTH_DRIVER;
 * without, it steps aside. */
bool machine_has_driver(const struct scene *scene);

/* WSL2 (/dev/dxg), or Jetson (nvmap, nvhost): calls are passed through and recorded, no more. NULL
 * on an ordinary machine. */
const char *machine_special(const struct scene *scene);

void machine_examine(const struct scene *scene, struct findings *findings);
