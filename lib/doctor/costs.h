/* Settings of the driver's that make CUDA start slowly, and are often forgotten. */
#pragma once

#include "doctor/scene.h"
#include "report/findings.h"

/* Eager loading; more connections than the driver makes by itself. */
void costs_examine(const struct scene *scene, struct findings *findings);

/* What cuInit costs for all the GPUs that are visible, by a broker's status (JSON). `visible` is
 * CUDA_VISIBLE_DEVICES, or NULL. */
void costs_judge_devices(const char *status, const char *visible, struct findings *findings);
