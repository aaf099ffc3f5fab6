/* Whether bytes are a profile. Pure; used on everything that comes from a disk, so it trusts
 * nothing: every count, enumeration, text and padding is checked before anyone else sees the
 * struct. */
#include "base/utf8.h"
#include "profile/extension.h"
#include "profile/profile.h"

#include <string.h>

static bool is_zero(const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++)
		if (bytes[i])
			return false;
	return true;
}

/* UTF-8 that is harmless to a terminal, then zeros to the end: a name goes there, and into JSON, as
 * it is. */
static bool is_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size), at = 0;

	if (length == size || !is_zero(text + length, size - length))
		return false;
	while (at < length) {
		uint32_t rune;
		size_t bytes = utf8_next(text + at, length - at, &rune);

		if (!bytes || !utf8_is_harmless(rune))
			return false;
		at += bytes;
	}
	return true;
}

static bool is_context_sound(const struct profile_context *context)
{
	if (context->device < 0)
		return false;
	if (context->kind == PROFILE_PRIMARY)
		return context->version == 0;
	return context->kind == PROFILE_CREATED && context->version >= 1 && context->version <= 4;
}

static bool is_section_sound(const struct profile_section *section)
{
	if (!is_text(section->model, sizeof(section->model)) || section->recent > 32 ||
		section->recent > section->runs || section->rule >= PROFILE_RULE_COUNT ||
		section->tried > 8 || section->context_count > PROFILE_CONTEXTS ||
		section->wrong_rank > PROFILE_RANK_MAX + 1)
		return false;
	if ((section->rule == PROFILE_RULE_ORDINAL) != (section->ordinal >= 0))
		return false;
	for (uint32_t i = 0; i < section->context_count; i++)
		if (!is_context_sound(&section->contexts[i]))
			return false;
	return is_zero(section->reserved, sizeof(section->reserved));
}

bool profile_is_sound(const struct profile *profile)
{
	const uint8_t *covered = (const uint8_t *)&profile->extension_digest;
	uint8_t digest[DIGEST_SIZE];

	if (profile->magic != PROFILE_MAGIC || profile->version != PROFILE_VERSION ||
		profile->extension_size > PROFILE_EXTENSION_MAX ||
		profile->file_size != sizeof(*profile) + profile->extension_size)
		return false;
	digest_of(covered, sizeof(*profile) - offsetof(struct profile, extension_digest), digest);
	if (memcmp(digest, profile->head_digest, sizeof(digest)))
		return false;
	if (!is_text(profile->name, sizeof(profile->name)) || !profile->kind ||
		profile->kind >= IDENTITY_KIND_COUNT || profile->section_count > PROFILE_SECTIONS ||
		!is_zero(profile->reserved, sizeof(profile->reserved)))
		return false;
	for (uint32_t i = 0; i < profile->section_count; i++)
		if (!is_section_sound(&profile->sections[i]))
			return false;
	return true;
}

bool profile_extension_is_sound(
	const struct profile *profile, const struct profile_extension *extension)
{
	uint8_t digest[DIGEST_SIZE];

	if (extension->size != profile->extension_size)
		return false;
	digest_of(extension->data, extension->size, digest);
	return !memcmp(digest, profile->extension_digest, sizeof(digest)) &&
	       extension_is_walkable(extension->data, extension->size);
}
