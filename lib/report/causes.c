/* Warnings that `hearth doctor` and `hearth report` share. Pure; in tools only. */
#include "report/causes.h"

#include <string.h>

/* The driver's own number of connections (CUDA programming guide, CUDA_DEVICE_MAX_CONNECTIONS). On
 * an H200 a context took 115 ms with 8, and 590 ms with 32. */
#define DEFAULT_CONNECTIONS 8

void causes_add_loading(struct findings *findings, bool is_eager)
{
	if (!is_eager)
		return;
	findings_add(findings, "eager-loading", SEVERITY_WARNING,
		"CUDA_MODULE_LOADING=EAGER: every kernel of every library is loaded at the start, "
		"seconds of it with PyTorch");
	findings_remedy(findings, "unset CUDA_MODULE_LOADING");
}

void causes_add_connections(struct findings *findings, uint32_t connections)
{
	if (connections <= DEFAULT_CONNECTIONS)
		return;
	findings_add(findings, "connections", SEVERITY_WARNING,
		"CUDA_DEVICE_MAX_CONNECTIONS=%u: each context makes so many, and takes that much "
		"longer (with 32 some 5 times as long)",
		connections);
	findings_remedy(findings, "unset CUDA_DEVICE_MAX_CONNECTIONS: the driver makes %d",
		DEFAULT_CONNECTIONS);
}

void causes_add_cache(
	struct findings *findings, enum jit_cache cache, const struct jit_cache_place *place)
{
	static const char loss[] = "PTX is compiled anew in every process";

	if (cache == JIT_CACHE_OFF) {
		findings_add(findings, "jit-cache", SEVERITY_WARNING,
			"the JIT cache is off by CUDA_CACHE_DISABLE: %s", loss);
		findings_remedy(findings, "unset CUDA_CACHE_DISABLE");
	} else if (cache == JIT_CACHE_NOWHERE) {
		findings_add(findings, "jit-cache", SEVERITY_WARNING,
			"there is no JIT cache, since HOME and CUDA_CACHE_PATH are unset: %s",
			loss);
		findings_remedy(findings, "set CUDA_CACHE_PATH to a folder that stays");
	} else if (cache == JIT_CACHE_LOCKED) {
		if (place)
			findings_add(findings, "jit-cache", SEVERITY_WARNING,
				"the JIT cache %s can't be written (%s: %s): %s", place->path,
				place->folder, strerror(-place->error), loss);
		else
			findings_add(findings, "jit-cache", SEVERITY_WARNING,
				"the JIT cache can't be written: %s", loss);
		findings_remedy(findings, "set CUDA_CACHE_PATH to a folder that can be written");
	}
}
