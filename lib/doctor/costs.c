/* What the environment makes CUDA's start cost. Runs in the hearth tool; only looks. */
#include "doctor/costs.h"

#include <jansson.h>
#include <stdlib.h>
#include <strings.h>

/* The driver's own number of connections (CUDA programming guide, CUDA_DEVICE_MAX_CONNECTIONS). On
 * an H200 a context took 115 ms with 8, and 590 ms with 32. */
#define DEFAULT_CONNECTIONS 8

static void examine_loading(const struct scene *scene, struct findings *findings)
{
	const char *loading = scene->env[ENV_CUDA_MODULE_LOADING];

	if (!loading || strcasecmp(loading, "EAGER"))
		return;
	findings_add(findings, "eager-loading", SEVERITY_WARNING,
		"CUDA_MODULE_LOADING=%s: every kernel of every library is loaded at the start, "
		"seconds of it with PyTorch",
		loading);
	findings_remedy(findings, "unset CUDA_MODULE_LOADING");
}

static void examine_connections(const struct scene *scene, struct findings *findings)
{
	const char *text = scene->env[ENV_CUDA_DEVICE_MAX_CONNECTIONS];
	char *end;
	long count = text ? strtol(text, &end, 10) : 0;

	if (!text || end == text || count <= DEFAULT_CONNECTIONS)
		return;
	findings_add(findings, "connections", SEVERITY_WARNING,
		"CUDA_DEVICE_MAX_CONNECTIONS=%s: each context makes so many, and takes that much "
		"longer (with 32 some 5 times as long)",
		text);
	findings_remedy(findings, "unset it: the driver makes %d", DEFAULT_CONNECTIONS);
}

void costs_examine(const struct scene *scene, struct findings *findings)
{
	examine_loading(scene, findings);
	examine_connections(scene, findings);
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
