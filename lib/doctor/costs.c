/* What the environment makes CUDA's start cost. Runs in the hearth tool; only looks. */
#include "doctor/costs.h"

#include "region/conditions.h"
#include "report/causes.h"

#include <jansson.h>

void costs_examine(const struct scene *scene, struct findings *findings)
{
	causes_add_loading(findings, conditions_is_eager(scene->env[ENV_CUDA_MODULE_LOADING]));
	causes_add_connections(
		findings, conditions_connections(scene->env[ENV_CUDA_DEVICE_MAX_CONNECTIONS]));
}

void costs_judge_devices(const char *status, const char *visible, struct findings *findings)
{
	json_t *json = json_loads(status, 0, NULL);
	size_t count = json_array_size(json_object_get(json, "devices"));
	json_int_t init_us =
		json_integer_value(json_object_get(json_object_get(json, "keeper"), "init_us"));

	if (!visible && count > 1 && init_us > 0) {
		findings_add(findings, "visible-gpus", SEVERITY_WARNING,
			"%zu GPUs are visible: without the keeper cuInit takes %lld ms for them, "
			"in every process",
			count, (long long)(init_us + 500) / 1000);
		findings_remedy(findings, "set CUDA_VISIBLE_DEVICES to those that a program uses");
	}
	json_decref(json);
}
