/* Profiles as JSON. In tools only; allocates. A value that is not known is null. */
#include "report/profiles.h"
#include "report/profiles_files.h"
#include "report/profiles_images.h"
#include "report/profiles_text.h"

static json_t *duration(uint32_t us)
{
	return us ? json_integer(us) : json_null();
}

static json_t *contexts_json(const struct profile_section *section)
{
	json_t *contexts = json_array();

	for (uint32_t i = 0; i < section->context_count; i++) {
		const struct profile_context *context = &section->contexts[i];
		bool is_primary = context->kind == PROFILE_PRIMARY;

		json_array_append_new(contexts,
			json_pack("{s:s,s:o,s:I,s:i}", "kind", is_primary ? "primary" : "created",
				"version",
				is_primary ? json_null() : json_integer(context->version), "flags",
				(json_int_t)context->flags, "device", context->device));
	}
	return contexts;
}

static json_t *section_json(
	const struct profiles_entry *entry, const struct profile_section *section)
{
	const struct profile *profile = &entry->profile;
	json_t *images = profiles_images_json(entry, section), *json;
	char build[2 * PROFILE_BUILD_SIZE + 1], when[PROFILES_TIME_SIZE], rule[PROFILES_RULE_SIZE];
	struct start_decision decision;
	json_t *next;

	profiles_build(section, build);
	profiles_time(section->learned_s, when);
	profiles_rule(section, rule);
	profiles_decide(profile, section, &decision);
	next = json_pack("{s:s,s:o,s:s}", "what", profiles_what(&decision), "moment",
		decision.what == DECIDE_NOTHING
			? json_null()
			: json_string(decision.moment == DECIDE_AT_START ? "start" : "lookup"),
		"reason", decision.reason);
	json = json_pack("{s:s,s:s,s:s,s:I,s:b,s:o,s:o,s:o,s:o,s:o,s:s,s:I,s:I,s:I,s:I,s:I,s:o}",
		"gpu", section->model, "driver_build", build, "learned", when, "runs",
		(json_int_t)section->runs, "used_cuda", section->used & 1, "start_lead_us",
		duration(decide_lead(section->start_lead_us)), "lookup_lead_us",
		duration(decide_lead(section->lookup_lead_us)), "init_us",
		duration(section->init_us), "context_us", duration(section->context_us), "contexts",
		contexts_json(section), "device", rule, "probation", (json_int_t)section->probation,
		"hits", (json_int_t)section->hits, "squashes", (json_int_t)section->squashes,
		"unused", (json_int_t)section->unused, "pause", (json_int_t)section->pause, "next",
		next);
	if (images)
		json_object_set_new(json, "images", images);
	return json;
}

json_t *profiles_json(const struct profiles *profiles)
{
	json_t *list = json_array();

	for (size_t i = 0; i < profiles->count; i++) {
		const struct profiles_entry *entry = &profiles->entries[i];
		json_t *sections = json_array(), *files = profiles_files_json(entry), *json;

		for (uint32_t at = 0; at < entry->profile.section_count; at++)
			json_array_append_new(
				sections, section_json(entry, &entry->profile.sections[at]));
		json = json_pack("{s:s,s:s,s:s,s:s,s:I,s:o}", "id", entry->id, "program",
			entry->profile.name, "kind",
			identity_kind_name((enum identity_kind)entry->profile.kind), "origin",
			entry->is_system ? "system" : "user", "extension_bytes",
			(json_int_t)entry->profile.extension_size, "sections", sections);
		if (files)
			json_object_set_new(json, "files", files);
		json_array_append_new(list, json);
	}
	return json_pack("{s:o,s:I}", "profiles", list, "damaged", (json_int_t)profiles->damaged);
}
