/* Sections of a profile in memory. Pure; in any process. */
#include "profile/profile.h"

#include <string.h>

void profile_init(struct profile *profile, const struct identity *identity)
{
	memset(profile, 0, sizeof(*profile));
	profile->magic = PROFILE_MAGIC;
	profile->version = PROFILE_VERSION;
	profile->kind = identity->kind;
	memcpy(profile->program, identity->digest, sizeof(profile->program));
	memcpy(profile->name, identity->name, sizeof(profile->name));
}

/* As it is stored: cut off, NUL-padded, printable. */
static void model_text(const char *model, char ret_text[PROFILE_MODEL_SIZE])
{
	memset(ret_text, 0, PROFILE_MODEL_SIZE);
	for (size_t i = 0; i < PROFILE_MODEL_SIZE - 1 && model[i]; i++)
		ret_text[i] = model[i] >= ' ' && model[i] <= '~' ? model[i] : '?';
}

const struct profile_section *profile_section(const struct profile *profile,
	const uint8_t build_id[PROFILE_BUILD_SIZE], const char *model)
{
	const struct profile_section *found = NULL;
	char text[PROFILE_MODEL_SIZE];

	if (model)
		model_text(model, text);
	for (uint32_t i = 0; i < profile->section_count; i++) {
		const struct profile_section *section = &profile->sections[i];

		if (memcmp(section->build_id, build_id, PROFILE_BUILD_SIZE))
			continue;
		if (model && !memcmp(section->model, text, sizeof(text)))
			return section;
		if (!model && found)
			return NULL;
		if (!model)
			found = section;
	}
	return found;
}

struct profile_section *profile_section_make(
	struct profile *profile, const uint8_t build_id[PROFILE_BUILD_SIZE], const char *model)
{
	const struct profile_section *known = profile_section(profile, build_id, model);
	struct profile_section *section;

	/* A run that never came to know its GPU counts for the only one that is known; and if it
	 * was the first, its section is the GPU's from now on. */
	if (!known)
		known = profile_section(profile, build_id, *model ? "" : NULL);
	if (known) {
		section = &profile->sections[known - profile->sections];
		if (*model)
			model_text(model, section->model);
		return section;
	}
	if (profile->section_count < PROFILE_SECTIONS) {
		section = &profile->sections[profile->section_count++];
	} else {
		section = &profile->sections[0];
		for (uint32_t i = 1; i < PROFILE_SECTIONS; i++)
			if (profile->sections[i].learned_s < section->learned_s)
				section = &profile->sections[i];
	}
	memset(section, 0, sizeof(*section));
	memcpy(section->build_id, build_id, PROFILE_BUILD_SIZE);
	model_text(model, section->model);
	section->ordinal = -1;
	return section;
}
