/* What a program loads, for people: part of profiles_print and profiles_json. */
#pragma once

#include "report/profiles.h"

/* The section's images and their kernels; nothing where they were not read. */
void profiles_print_images(
	const struct profiles_entry *entry, const struct profile_section *section, FILE *to);

/* [{"file":...}, ...], NULL where they were not read. */
json_t *profiles_images_json(
	const struct profiles_entry *entry, const struct profile_section *section);
