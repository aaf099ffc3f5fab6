/* Loading, choosing and printing profiles. In tools only; trusts nothing but what profile_read_file
 * has checked. */
#include "report/profiles.h"

#include "base/array.h"
#include "profile/decide.h"
#include "profile/folder.h"
#include "report/figure.h"
#include "report/profiles_files.h"
#include "report/profiles_images.h"
#include "report/profiles_text.h"
#include "report/table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct loading {
	const char *folder;
	bool is_system;
	struct profiles *profiles;
};

static bool is_known(const struct profiles *profiles, const char *id)
{
	for (size_t i = 0; i < profiles->count; i++)
		if (!strcmp(profiles->entries[i].id, id))
			return true;
	return false;
}

static int load_entry(int folder, const char *name, void *context)
{
	struct loading *loading = context;
	struct profiles *profiles = loading->profiles;
	struct profiles_entry *entries, *entry;
	char path[PROFILE_PATH_MAX];
	int length;

	if (!folder_is_profile_name(name) || is_known(profiles, name))
		return 0;
	length = snprintf(path, sizeof(path), "%s/%s", loading->folder, name);
	if (length < 0 || length >= (int)sizeof(path))
		return -ENAMETOOLONG;
	entries = array_resize(profiles->entries, profiles->count + 1, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	profiles->entries = entries;
	entry = &entries[profiles->count];
	memset(entry, 0, sizeof(*entry));
	if (profile_read_file(path, &entry->profile, NULL)) {
		profiles->damaged++;
		return 0;
	}
	digest_format(entry->profile.program, DIGEST_SIZE / 2, entry->id);
	if (strcmp(entry->id, name)) {
		profiles->damaged++;
		return 0;
	}
	entry->is_system = loading->is_system;
	profiles->count++;
	return 0;
}

static int compare_entries(const void *left, const void *right)
{
	const struct profiles_entry *a = left, *b = right;
	uint64_t a_s = profiles_learned_s(&a->profile), b_s = profiles_learned_s(&b->profile);

	return a_s != b_s ? (a_s < b_s) - (a_s > b_s) : strcmp(a->id, b->id);
}

int profiles_load(const char *folder, bool is_system, struct profiles *profiles)
{
	struct loading loading = {folder, is_system, profiles};
	int rc = folder_walk(folder, load_entry, &loading);

	if (profiles->count)
		qsort(profiles->entries, profiles->count, sizeof(profiles->entries[0]),
			compare_entries);
	return rc;
}

static bool is_named(const struct profiles_entry *entry, const char *what)
{
	size_t length = strlen(what);

	return !strcmp(entry->profile.name, what) ||
	       (length >= PROFILES_PREFIX_MIN && !strncmp(entry->id, what, length));
}

/* To be called before profiles_read_images: nothing is freed. */
size_t profiles_choose(struct profiles *profiles, const char *what)
{
	size_t kept = 0;

	for (size_t i = 0; i < profiles->count; i++)
		if (is_named(&profiles->entries[i], what))
			profiles->entries[kept++] = profiles->entries[i];
	profiles->count = kept;
	return kept;
}

int profiles_read_images(const char *folder, struct profiles *profiles)
{
	for (size_t i = 0; i < profiles->count; i++) {
		struct profiles_entry *entry = &profiles->entries[i];
		struct profile_extension *extension = &entry->extension;

		extension->room = PROFILE_EXTENSION_MAX;
		extension->data = malloc(extension->room);
		if (!extension->data)
			return -ENOMEM;
		/* It may be gone or changed since: then it loads nothing that we know of. */
		if (profile_read(entry->is_system ? PROFILE_SYSTEM_DIR : folder,
			    entry->profile.program, &entry->profile, extension))
			extension->size = 0;
	}
	return 0;
}

void profiles_done(struct profiles *profiles)
{
	for (size_t i = 0; i < profiles->count; i++)
		free(profiles->entries[i].extension.data);
	free(profiles->entries);
	*profiles = (struct profiles){0};
}

void profiles_print_list(const struct profiles *profiles, FILE *to)
{
	static const struct table_column columns[] = {
		{"id", TABLE_LEFT, 0},
		{"program", TABLE_LEFT, 32},
		{"kind", TABLE_LEFT, 0},
		{"runs", TABLE_RIGHT, 0},
		{"hits", TABLE_RIGHT, 0},
		{"misses", TABLE_RIGHT, 0},
		{"learned", TABLE_LEFT, 0},
		{"done ahead next time", TABLE_LEFT, 0},
	};
	struct table *table = table_new(sizeof(columns) / sizeof(columns[0]), columns);

	for (size_t i = 0; i < profiles->count; i++) {
		const struct profiles_entry *entry = &profiles->entries[i];
		const struct profile_section *latest = profiles_latest(&entry->profile);
		struct start_decision decision;
		char when[PROFILES_TIME_SIZE];

		profiles_decide(&entry->profile, latest, &decision);
		profiles_time(profiles_learned_s(&entry->profile), when);
		table_cell(table, "%.8s", entry->id);
		table_cell(table, "%s", entry->profile.name);
		table_cell(table, "%s%s",
			identity_kind_name((enum identity_kind)entry->profile.kind),
			entry->is_system ? ", system" : "");
		table_cell(table, "%u", latest ? latest->runs : 0);
		table_cell(table, "%u", latest ? latest->hits : 0);
		table_cell(table, "%u", latest ? latest->squashes + latest->unused : 0);
		table_cell(table, "%s", when);
		table_cell(table, "%s%s", profiles_what(&decision), profiles_moment(&decision));
	}
	table_print(table, to);
	table_free(table);
}

static void print_lead(const char *label, const uint32_t leads[PROFILE_LEADS], FILE *to)
{
	char text[FIGURE_SIZE];
	uint32_t lead = decide_lead(leads);

	fprintf(to, "  %s%s\n", label, lead ? figure_time(lead, text) : "not seen");
}

static void print_duration(const char *label, uint32_t us, FILE *to)
{
	char text[FIGURE_SIZE];

	fprintf(to, "  %s%s\n", label, us ? figure_time(us, text) : "not known");
}

static void print_contexts(const struct profile_section *section, FILE *to)
{
	for (uint32_t i = 0; i < section->context_count; i++) {
		const struct profile_context *context = &section->contexts[i];

		if (context->kind == PROFILE_PRIMARY)
			fprintf(to, "  context            primary");
		else
			fprintf(to, "  context            cuCtxCreate_v%u", context->version);
		fprintf(to, ", flags 0x%x, device %d\n", context->flags, context->device);
	}
}

static void print_section(
	const struct profiles_entry *entry, const struct profile_section *section, FILE *to)
{
	const struct profile *profile = &entry->profile;
	char build[2 * PROFILE_BUILD_SIZE + 1], when[PROFILES_TIME_SIZE], rule[PROFILES_RULE_SIZE];
	struct start_decision decision;

	profiles_build(section, build);
	profiles_time(section->learned_s, when);
	profiles_rule(section, rule);
	profiles_decide(profile, section, &decision);
	fprintf(to, "%s, driver build %s\n", *section->model ? section->model : "unknown GPU",
		build);
	fprintf(to, "  runs               %u, the latest ended %s\n", section->runs, when);
	fprintf(to, "  used CUDA          %s\n",
		section->used & 1 ? "yes" : "not in the latest run");
	print_lead("start to cuInit    ", section->start_lead_us, to);
	print_lead("lookup to cuInit   ", section->lookup_lead_us, to);
	print_duration("cuInit takes       ", section->init_us, to);
	print_duration("a context takes    ", section->context_us, to);
	print_contexts(section, to);
	fprintf(to, "  device             %s\n", rule);
	if (section->probation)
		fprintf(to, "  wrong device       cuInit only for %u more runs\n",
			section->probation);
	fprintf(to, "  hits               %u; squashes %u, unused %u\n", section->hits,
		section->squashes, section->unused);
	if (section->pause)
		fprintf(to, "  paused             for %u more runs\n", section->pause);
	fprintf(to, "  next time          %s%s: %s\n", profiles_what(&decision),
		profiles_moment(&decision), decision.reason);
	profiles_print_images(entry, section, to);
}

void profiles_print(const struct profiles_entry *entry, FILE *to)
{
	fprintf(to, "%s (%s%s) %s\n", entry->profile.name,
		identity_kind_name((enum identity_kind)entry->profile.kind),
		entry->is_system ? ", system" : "", entry->id);
	for (uint32_t i = 0; i < entry->profile.section_count; i++)
		print_section(entry, &entry->profile.sections[i], to);
	profiles_print_files(entry, to);
}
