/* What around a program changes how CUDA starts in it: container, JIT cache, MPS, injected tools.
 */
#pragma once

#include "doctor/scene.h"
#include "report/findings.h"

/* "docker", "podman", "kubernetes", ...; NULL outside of containers. */
const char *surroundings_container(const struct scene *scene);

void surroundings_examine(const struct scene *scene, struct findings *findings);
