/* CUDA MPS, as a program started now would find it. */
#pragma once

#include "doctor/scene.h"
#include "report/findings.h"

/* The daemon of CUDA_MPS_PIPE_DIRECTORY, else of the driver's default folder where there is one,
 * else Hearth's own; the client's variables. Asks the daemon, for 1.5 s at most. */
void mps_side_examine(const struct scene *scene, struct findings *findings);

/* What a code from 805 to 810 means. 0, or -EINVAL for another one. */
int mps_side_explain(unsigned code, struct findings *findings);
