/* `hearth profile`: lists, shows, forgets, exports and imports what programs taught. Works on the
 * state folder's files alone; no broker is needed. */
#include "base/settings.h"
#include "base/state_dir.h"
#include "command.h"
#include "options.h"
#include "profile/extension.h"
#include "profile/image_store.h"
#include "profile/images.h"
#include "report/bundle.h"
#include "report/profiles.h"
#include "spare/learned.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct request {
	const char *into; /* --into, or NULL */
	bool is_json;
	bool is_all;
	bool with_images;
	int count;
	char **words; /* after the subcommand's name */
	char folder[PROFILE_PATH_MAX];
};

/* A profile with its extension area, as export and import move it. */
struct whole {
	struct profile profile;
	struct profile_extension extension;
	uint8_t room[PROFILE_EXTENSION_MAX];
};

static int find_folder(struct request *request)
{
	static const char tail[] = "/profiles";
	struct settings settings;
	int rc;

	settings_read(&settings);
	rc = state_dir_path(&settings, request->folder, sizeof(request->folder) - sizeof(tail));
	if (rc)
		return command_fail(COMMAND_FAILED,
			"profile: there is no state folder: set HEARTH_STATE_DIR or HOME");
	strcat(request->folder, tail);
	return 0;
}

static int load(const struct request *request, bool with_system, struct profiles *ret_profiles)
{
	int rc = profiles_load(request->folder, false, ret_profiles);

	if (rc)
		return command_fail(
			COMMAND_FAILED, "profile: %s: %s", request->folder, strerror(-rc));
	if (with_system)
		rc = profiles_load(PROFILE_SYSTEM_DIR, true, ret_profiles);
	if (rc)
		return command_fail(
			COMMAND_FAILED, "profile: %s: %s", PROFILE_SYSTEM_DIR, strerror(-rc));
	return 0;
}

static int choose(const char *what, struct profiles *profiles)
{
	if (!profiles_choose(profiles, what))
		return command_fail(COMMAND_FAILED,
			"profile: '%s' is not among the programs that have one", what);
	return 0;
}

static int finish(FILE *to, const char *path)
{
	return fflush(to) ? command_fail(COMMAND_FAILED, "%s: %s", path, strerror(errno))
			  : COMMAND_OK;
}

static int list(struct request *request)
{
	struct profiles profiles = {0};
	int rc = load(request, true, &profiles);

	if (!rc && request->is_json) {
		rc = command_print_json(profiles_json(&profiles), stdout);
	} else if (!rc) {
		if (profiles.count)
			profiles_print_list(&profiles, stdout);
		else
			printf("no program has a profile in %s\n", request->folder);
		if (profiles.damaged)
			command_fail(0, "profile: %zu file%s in %s count%s as none",
				profiles.damaged, profiles.damaged == 1 ? "" : "s", request->folder,
				profiles.damaged == 1 ? "s" : "");
		rc = finish(stdout, "stdout");
	}
	profiles_done(&profiles);
	return rc;
}

static int show(struct request *request)
{
	struct profiles profiles = {0};
	int rc = load(request, true, &profiles);

	if (!rc)
		rc = choose(request->words[0], &profiles);
	if (!rc && profiles_read_images(request->folder, &profiles))
		rc = command_fail(COMMAND_FAILED, "profile: %s", strerror(ENOMEM));
	if (!rc && request->is_json)
		rc = command_print_json(profiles_json(&profiles), stdout);
	for (size_t i = 0; !rc && !request->is_json && i < profiles.count; i++) {
		if (i)
			putchar('\n');
		profiles_print(&profiles.entries[i], stdout);
	}
	profiles_done(&profiles);
	return rc ? rc : finish(stdout, "stdout");
}

static int forget_one(struct request *request, const char *what)
{
	struct profiles profiles = {0};
	int rc = load(request, false, &profiles);

	if (!rc)
		rc = choose(what, &profiles);
	for (size_t i = 0; !rc && i < profiles.count; i++) {
		char path[PROFILE_PATH_MAX];

		if (profile_path(request->folder, profiles.entries[i].profile.program, path) ||
			(unlink(path) && errno != ENOENT))
			rc = command_fail(COMMAND_FAILED, "profile: %s: %s", path, strerror(errno));
	}
	profiles_done(&profiles);
	return rc;
}

/* All of them, also those that count as none. */
static int forget(struct request *request)
{
	int rc = 0;

	if (request->is_all) {
		char store[PROFILE_PATH_MAX];

		rc = profile_prune(request->folder, 0, 0);
		if (rc >= 0 && !image_store_folder(request->folder, store))
			image_store_prune(store, 0);
		learned_forget(request->folder);
		return rc < 0 ? command_fail(COMMAND_FAILED, "profile: %s: %s", request->folder,
					strerror(-rc))
			      : COMMAND_OK;
	}
	for (int i = 0; i < request->count && !rc; i++)
		rc = forget_one(request, request->words[i]);
	return rc;
}

static bool put_export(
	const struct request *request, const struct whole *whole, bool is_system, FILE *to)
{
	char store[PROFILE_PATH_MAX] = IMAGE_STORE_SYSTEM_DIR;

	if (!request->with_images)
		return fwrite(&whole->profile, sizeof(whole->profile), 1, to) == 1 &&
		       fwrite(whole->room, 1, whole->extension.size, to) == whole->extension.size;
	return (is_system || !image_store_folder(request->folder, store)) &&
	       !bundle_write(to, &whole->profile, &whole->extension, store);
}

static int write_export(
	const struct request *request, const struct whole *whole, bool is_system, const char *path)
{
	bool is_stdout = !strcmp(path, "-");
	FILE *to = is_stdout ? stdout : fopen(path, "we");
	bool is_written;

	if (!to)
		return command_fail(COMMAND_FAILED, "profile: %s: %s", path, strerror(errno));
	is_written = put_export(request, whole, is_system, to);
	if (is_stdout ? fflush(to) : fclose(to))
		is_written = false;
	return is_written ? COMMAND_OK
			  : command_fail(COMMAND_FAILED, "profile: %s: %s", path, strerror(errno));
}

static int export(struct request *request)
{
	struct whole *whole = calloc(1, sizeof(*whole));
	const char *path = request->count > 1 ? request->words[1] : "-";
	struct profiles profiles = {0};
	int rc = whole ? load(request, true, &profiles) : COMMAND_FAILED;

	if (!rc)
		rc = choose(request->words[0], &profiles);
	if (!rc && profiles.count > 1)
		rc = command_fail(COMMAND_FAILED,
			"profile: '%s' names %zu programs: say which one by its id",
			request->words[0], profiles.count);
	if (!rc && !strcmp(path, "-") && isatty(STDOUT_FILENO))
		rc = command_fail(COMMAND_USAGE, "profile: a profile is not for a terminal: name a "
						 "file, or redirect into one");
	if (!rc) {
		const struct profiles_entry *entry = &profiles.entries[0];

		whole->extension.data = whole->room;
		whole->extension.room = sizeof(whole->room);
		if (profile_read(entry->is_system ? PROFILE_SYSTEM_DIR : request->folder,
			    entry->profile.program, &whole->profile, &whole->extension))
			rc = command_fail(COMMAND_FAILED, "profile: '%s' cannot be read any more",
				request->words[0]);
		else
			rc = write_export(request, whole, entry->is_system, path);
	}
	profiles_done(&profiles);
	free(whole);
	return rc;
}

static int open_file_to_all(const char *folder, const uint8_t name[DIGEST_SIZE])
{
	char path[PROFILE_PATH_MAX];

	if (profile_path(folder, name, path) ||
		((chmod(path, 0644) || chmod(folder, 0755)) && errno != ENOENT))
		return command_fail(COMMAND_FAILED, "profile: %s: %s", folder, strerror(errno));
	return COMMAND_OK;
}

/* What lies in a folder for all users of an image must be readable for them. */
static int open_to_all(const char *folder, const char *store, const struct whole *whole)
{
	int rc = open_file_to_all(folder, whole->profile.program);
	struct images list;
	uint32_t cursor = 0;

	while (!rc && images_next(&whole->extension, &cursor, &list))
		for (uint32_t i = 0; !rc && i < list.head->image_count; i++)
			if (list.images[i].file == IMAGES_NO_FILE)
				rc = open_file_to_all(store, list.images[i].digest);
	return rc;
}

/* The folders on the way to one for all users; what cannot be made is said by whoever needs it. */
static void make_open_folders(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		if (!mkdir(part, 0755))
			chmod(part, 0755); /* whatever the umask */
	}
}

static int import_one(struct request *request, const char *path, struct whole *whole)
{
	const char *folder = request->into ? request->into : request->folder;
	char store[PROFILE_PATH_MAX];
	int rc;

	whole->extension =
		(struct profile_extension){.data = whole->room, .room = sizeof(whole->room)};
	if (access(path, R_OK))
		return command_fail(COMMAND_FAILED, "profile: %s: %s", path, strerror(errno));
	rc = image_store_folder(folder, store);
	if (rc)
		return command_fail(COMMAND_FAILED, "profile: %s: %s", folder, strerror(-rc));
	if (request->into)
		make_open_folders(folder);
	rc = bundle_read(path, store, &whole->profile, &whole->extension);
	if (rc == BUNDLE_NONE)
		rc = profile_read_file(path, &whole->profile, &whole->extension);
	if (rc)
		return command_fail(COMMAND_FAILED,
			"profile: %s is no profile of this version, or not one to trust: it must "
			"be "
			"a file of yours or root's, and no one else may write it",
			path);
	rc = profile_write(folder, &whole->profile, &whole->extension);
	if (rc)
		return command_fail(COMMAND_FAILED, "profile: %s: %s", folder, strerror(-rc));
	return request->into ? open_to_all(folder, store, whole) : COMMAND_OK;
}

static int import(struct request *request)
{
	struct whole *whole = calloc(1, sizeof(*whole));
	int rc = whole ? 0 : COMMAND_FAILED;

	for (int i = 0; i < request->count && !rc; i++)
		rc = import_one(request, request->words[i], whole);
	free(whole);
	return rc;
}

static const struct subcommand {
	const char *name;
	int (*run)(struct request *request);
	int least, most; /* words */
	bool has_json, has_all, has_into, has_images;
} subcommands[] = {
	{"list", list, 0, 0, true, false, false, false},
	{"show", show, 1, 1, true, false, false, false},
	{"forget", forget, 1, 1000, false, true, false, false},
	{"export", export, 1, 2, false, false, false, true},
	{"import", import, 1, 1000, false, false, true, false},
};

static int run_subcommand(struct request *request, const char *name)
{
	for (size_t i = 0; i < sizeof(subcommands) / sizeof(subcommands[0]); i++) {
		const struct subcommand *subcommand = &subcommands[i];
		int least = request->is_all ? 0 : subcommand->least;
		int most = request->is_all ? 0 : subcommand->most;
		int rc;

		if (strcmp(subcommand->name, name))
			continue;
		if (request->count > most)
			command_fail(0, "profile: '%s' is not expected", request->words[most]);
		if (request->count < least || request->count > most ||
			(request->is_json && !subcommand->has_json) ||
			(request->is_all && !subcommand->has_all) ||
			(request->into && !subcommand->has_into) ||
			(request->with_images && !subcommand->has_images))
			return command_usage(&command_profile);
		rc = find_folder(request);
		return rc ? rc : subcommand->run(request);
	}
	command_fail(0, "profile: '%s' is not one of list, show, forget, export, import", name);
	return command_usage(&command_profile);
}

static int run(int argc, char **argv)
{
	struct request request = {0};
	const struct option_row rows[] = {{.name = "json", .flag = &request.is_json},
		{.name = "all", .flag = &request.is_all}, {.name = "into", .text = &request.into},
		{.name = "with-images", .flag = &request.with_images}, {0}};
	char **words;
	int status = options_take(&command_profile, rows, WORDS_ANY, argc, argv, &words);

	if (status != OPTIONS_TAKEN)
		return status;
	if (!*words)
		return command_usage(&command_profile);
	request.words = words + 1;
	while (request.words[request.count])
		request.count++;
	return run_subcommand(&request, *words);
}

const struct command command_profile = {
	.name = "profile",
	.arguments =
		"list | show PROGRAM | forget PROGRAM... | forget --all | export PROGRAM [FILE] | "
		"import FILE...",
	.summary = "Show or forget what Hearth learned about programs",
	.help = "PROGRAM is a base name, or at least four digits of the id that list shows.\n"
		"\n"
		"  list [--json]            all programs, the latest first\n"
		"  show PROGRAM [--json]    all that is known of them\n"
		"  forget PROGRAM...        they count as never seen\n"
		"  forget --all             all of them\n"
		"  export PROGRAM [FILE]    one profile into a file (default: the standard "
		"output)\n"
		"    --with-images          and what it loads that lies in no file\n"
		"  import FILE...           exported profiles become yours\n"
		"    --into DIR             or everybody's; an image ships them in\n"
		"                           " PROFILE_SYSTEM_DIR ",\n"
		"                           and the images beside it\n",
	.run = run,
};
