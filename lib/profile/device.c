/* On which device a context is made ahead, and which contexts. Pure functions; on the speculative
 * thread, after its cuInit. */
#include "profile/decide.h"

#include "base/env.h"

int decide_rank(const char *const values[], int count)
{
	int rank = 0;

	for (int i = 0; i < count; i++) {
		const char *text = values[i];

		if (!text || !*text)
			continue;
		for (; *text >= '0' && *text <= '9' && rank <= (int)PROFILE_RANK_MAX; text++)
			rank = rank * 10 + (*text - '0');
		return *text || rank > (int)PROFILE_RANK_MAX ? DECIDE_BAD_RANK : rank;
	}
	return DECIDE_NO_RANK;
}

int decide_rank_of_environment(void)
{
	const char *values[] = {
		env_get(ENV_LOCAL_RANK),
		env_get(ENV_SLURM_LOCALID),
		env_get(ENV_OMPI_COMM_WORLD_LOCAL_RANK),
		env_get(ENV_MPI_LOCALRANKID),
	};

	return decide_rank(values, sizeof(values) / sizeof(values[0]));
}

static int guess(const struct profile_section *section, enum identity_kind kind, int visible_count,
	int rank, const char **ret_reason)
{
	*ret_reason = "no device is visible";
	if (visible_count <= 0)
		return -1;
	*ret_reason = "one device is visible";
	if (visible_count == 1)
		return 0;
	/* Workers of one parent share its environment, and so its rank. */
	*ret_reason = "a spawned child, and several devices are visible";
	if (kind == IDENTITY_CHILD)
		return -1;
	if (rank != DECIDE_NO_RANK) {
		bool is_below = rank >= 0 && rank < visible_count;

		/* Its siblings have the same profile, so an ordinal would be the wrong guess. */
		*ret_reason = is_below ? "the launcher's rank"
				       : "the launcher's rank is no visible device";
		return is_below ? rank : -1;
	}
	*ret_reason = "no rule for its device is known";
	if (!section || section->rule != PROFILE_RULE_ORDINAL)
		return -1;
	*ret_reason = "several instances run at a time";
	if (section->several)
		return -1;
	*ret_reason = "the learned device is not visible";
	if (section->ordinal < 0 || section->ordinal >= visible_count)
		return -1;
	*ret_reason = "the device of its latest runs";
	return section->ordinal;
}

int decide_guess(
	const struct profile_section *section, enum identity_kind kind, int visible_count, int rank)
{
	const char *reason;

	return guess(section, kind, visible_count, rank, &reason);
}

const char *decide_room(const struct device_state *device)
{
	if (device->compute_mode != COMPUTE_DEFAULT)
		return "the device's compute mode is not default";
	if (!device->is_memory_known)
		return NULL;
	if (device->free_bytes < DECIDE_MEMORY_MIN ||
		device->free_bytes < device->total_bytes / 100 * DECIDE_MEMORY_MIN_PERCENT)
		return "too little free memory";
	return NULL;
}

static void add_context(struct device_decision *decision, const struct profile_context *context)
{
	for (uint32_t i = 0; i < decision->context_count; i++)
		if (decision->contexts[i].kind == PROFILE_PRIMARY &&
			context->kind == PROFILE_PRIMARY)
			return; /* there is one per device */
	decision->contexts[decision->context_count] = *context;
	decision->contexts[decision->context_count++].device = decision->device;
}

/* The program's contexts on its first device, as HEARTH_CTX routes them. */
static void choose_contexts(const struct situation *situation, struct device_decision *decision)
{
	static const struct profile_context plain = {.kind = PROFILE_PRIMARY};
	const struct profile_section *section = situation->section;

	if (!section || !section->context_count) {
		add_context(decision, &plain);
		return;
	}
	for (uint32_t i = 0; i < section->context_count; i++) {
		struct profile_context context = section->contexts[i];

		if (context.device != section->contexts[0].device)
			continue;
		if (context.kind == PROFILE_CREATED && situation->contexts == CONTEXT_NATIVE)
			continue;
		if (context.kind == PROFILE_CREATED && situation->contexts == CONTEXT_PRIMARY)
			context = (struct profile_context){
				.kind = PROFILE_PRIMARY, .flags = context.flags};
		add_context(decision, &context);
	}
}

void decide_device(const struct situation *situation, int visible_count, int rank,
	const struct device_state *devices, struct device_decision *ret_decision)
{
	const char *reason = "hearth spare start --gpu";
	int device = situation->gpu;

	if (!situation->has_gpu)
		device = guess(situation->section, situation->kind, visible_count, rank, &reason);
	else if (device >= visible_count)
		device = -1;
	*ret_decision = (struct device_decision){.device = -1, .reason = reason};
	if (device < 0)
		return;
	if (situation->section && situation->section->probation && !situation->has_gpu) {
		ret_decision->reason = "a wrong device lately";
		return;
	}
	reason = decide_room(&devices[device]);
	if (reason) {
		ret_decision->reason = reason;
		return;
	}
	ret_decision->device = device;
	ret_decision->must_check_memory = !devices[device].is_memory_known;
	choose_contexts(situation, ret_decision);
	if (!ret_decision->context_count) {
		ret_decision->device = -1;
		ret_decision->reason = "HEARTH_CTX=native, and it makes its own contexts";
	}
}
