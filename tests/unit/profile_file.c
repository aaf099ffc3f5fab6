/* Profiles on disk: what is read back, what counts as none, what a folder may hold. */
#include "profile/extension.h"
#include "profile/folder.h"
#include "profile/learn.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char base[] = "/tmp/hearth-profile-XXXXXX", folder[128];
static struct identity identity;
static struct profile profile, read_back;
static uint8_t room[PROFILE_EXTENSION_MAX];
static struct profile_extension extension;

static void remove_base(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	cr_assert_eq(system(command), 0);
}

static void make(void)
{
	cr_assert_not_null(mkdtemp(base));
	snprintf(folder, sizeof(folder), "%s/state/profiles", base);
	identity = (struct identity){.kind = IDENTITY_SCRIPT, .name = "train.py"};
	digest_of("train.py", 8, identity.digest);
	profile_init(&profile, &identity);
	profile_section_make(&profile, (const uint8_t[PROFILE_BUILD_SIZE]){1}, "GPU")->runs = 1;
	extension = (struct profile_extension){.data = room, .room = sizeof(room)};
}

TestSuite(profile_file, .init = make, .fini = remove_base);

static const char *path_of(const struct profile *which)
{
	static char path[PROFILE_PATH_MAX];

	cr_assert_eq(profile_path(folder, which->program, path), 0);
	return path;
}

static int reread(void)
{
	return profile_read(folder, identity.digest, &read_back, &extension);
}

static void overwrite(size_t at, const void *data, size_t size)
{
	int fd = open(path_of(&profile), O_WRONLY);

	cr_assert_eq(pwrite(fd, data, size, (off_t)at), (ssize_t)size);
	close(fd);
}

Test(profile_file, comes_back_as_it_was_written)
{
	cr_assert_eq(reread(), PROFILE_NONE);
	cr_assert_eq(extension_add(&extension, 99, "unknown", 7), 0);
	cr_assert_eq(profile_write(folder, &profile, &extension), 0);
	memset(room, 0, 64);
	extension.size = 0;
	cr_assert_eq(reread(), 0);
	cr_assert_arr_eq(&read_back, &profile, sizeof(profile));
	cr_assert_eq(extension.size, 16);
	cr_assert_arr_eq(room + 8, "unknown", 7);
	cr_assert_eq(profile_read(folder, identity.digest, &read_back, NULL), 0);
}

Test(profile_file, only_its_owner_can_read_it_whatever_the_umask)
{
	struct stat file;

	umask(0);
	cr_assert_eq(profile_write(folder, &profile, NULL), 0);
	cr_assert_eq(stat(path_of(&profile), &file), 0);
	cr_assert_eq(file.st_mode & 07777, 0600);
	cr_assert_eq(stat(folder, &file), 0);
	cr_assert_eq(file.st_mode & 07777, 0700);
}

Test(profile_file, every_damaged_byte_makes_it_none)
{
	cr_assert_eq(extension_add(&extension, 99, "unknown", 7), 0);
	cr_assert_eq(profile_write(folder, &profile, &extension), 0);
	for (size_t at = 0; at < profile.file_size; at++) {
		uint8_t whole, damaged;
		int fd = open(path_of(&profile), O_RDONLY);

		cr_assert_eq(pread(fd, &whole, 1, (off_t)at), 1);
		close(fd);
		damaged = whole ^ 0x10;
		overwrite(at, &damaged, 1);
		cr_assert_eq(reread(), PROFILE_NONE, "byte %zu", at);
		overwrite(at, &whole, 1);
	}
	cr_assert_eq(reread(), 0);
}

Test(profile_file, truncated_or_longer_is_none)
{
	cr_assert_eq(extension_add(&extension, 99, "unknown", 7), 0);
	cr_assert_eq(profile_write(folder, &profile, &extension), 0);
	for (off_t size = (off_t)profile.file_size + 1; size >= 0; size -= 61) {
		cr_assert_eq(truncate(path_of(&profile), size), 0);
		cr_assert_eq(reread(), PROFILE_NONE, "%ld bytes", (long)size);
		cr_assert_eq(profile_read(folder, identity.digest, &read_back, NULL), PROFILE_NONE,
			"%ld bytes", (long)size);
	}
}

Test(profile_file, fields_out_of_range_are_none_though_the_digest_is_right)
{
	static const struct {
		const char *what;
		size_t at;
		uint32_t value;
	} rows[] = {
#define HEAD(field, value) {#field, offsetof(struct profile, field), value}
#define SECTION(field, value)                                                                      \
	{                                                                                          \
#field,                                                                            \
			offsetof(struct profile, sections) +                                       \
				offsetof(struct profile_section, field),                           \
			value                                                                      \
	}
		HEAD(magic, 0),
		HEAD(version, PROFILE_VERSION + 1),
		HEAD(version, 0),
		HEAD(file_size, sizeof(struct profile) + 8),
		HEAD(extension_size, 8),
		HEAD(extension_size, UINT32_MAX),
		HEAD(name, 0x1b1b1b1b),
		HEAD(kind, 0),
		HEAD(kind, IDENTITY_KIND_COUNT),
		HEAD(section_count, PROFILE_SECTIONS + 1),
		HEAD(reserved, 1),
		SECTION(model, 0x0a0a0a0a),
		SECTION(recent, 33),
		SECTION(recent, 2), /* of 1 run */
		SECTION(rule, PROFILE_RULE_COUNT),
		SECTION(rule, PROFILE_RULE_ORDINAL), /* without one */
		SECTION(ordinal, 0),                 /* without the rule */
		SECTION(context_count, PROFILE_CONTEXTS + 1),
		SECTION(context_count, 1), /* of kind 0 */
		SECTION(tried, 9),
		SECTION(reserved, 1),
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct profile changed = profile;

		cr_assert_eq(profile_write(folder, &changed, NULL), 0);
		cr_assert(profile_is_sound(&changed));
		memcpy((char *)&changed + rows[i].at, &rows[i].value, sizeof(rows[i].value));
		digest_of(&changed.extension_digest,
			sizeof(changed) - offsetof(struct profile, extension_digest),
			changed.head_digest);
		cr_expect_not(profile_is_sound(&changed), "%s = %u", rows[i].what, rows[i].value);
	}
}

Test(profile_file, writable_by_others_is_none)
{
	static const mode_t modes[] = {0620, 0602, 0666};

	cr_assert_eq(profile_write(folder, &profile, NULL), 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		cr_assert_eq(chmod(path_of(&profile), modes[i]), 0);
		cr_expect_eq(reread(), PROFILE_NONE, "%o", modes[i]);
	}
	cr_assert_eq(chmod(path_of(&profile), 0644), 0);
	cr_assert_eq(reread(), 0);
}

Test(profile_file, a_symlink_a_fifo_and_a_folder_are_none, .timeout = 20)
{
	char other[160];

	cr_assert_eq(profile_write(folder, &profile, NULL), 0);
	snprintf(other, sizeof(other), "%s/other", base);
	cr_assert_eq(rename(path_of(&profile), other), 0);
	cr_assert_eq(symlink(other, path_of(&profile)), 0);
	cr_assert_eq(reread(), PROFILE_NONE);
	cr_assert_eq(unlink(path_of(&profile)), 0);
	cr_assert_eq(mkfifo(path_of(&profile), 0600), 0);
	cr_assert_eq(reread(), PROFILE_NONE);
	cr_assert_eq(unlink(path_of(&profile)), 0);
	cr_assert_eq(mkdir(path_of(&profile), 0700), 0);
	cr_assert_eq(reread(), PROFILE_NONE);
}

Test(profile_file, anothers_file_is_none_and_roots_is_not)
{
	if (geteuid()) {
		cr_log_info("skipped: only root can give files away");
		return;
	}
	cr_assert_eq(profile_write(folder, &profile, NULL), 0);
	cr_assert_eq(chmod(base, 0755), 0);
	cr_assert_eq(chown(path_of(&profile), 1234, 1234), 0);
	cr_assert_eq(reread(), PROFILE_NONE, "root trusts uid 1234");
	cr_assert_eq(chown(path_of(&profile), 0, 0), 0);
	cr_assert_eq(chmod(path_of(&profile), 0644), 0);
	snprintf(folder, sizeof(folder), "%s/state", base);
	cr_assert_eq(chmod(folder, 0755), 0);
	snprintf(folder, sizeof(folder), "%s/state/profiles", base);
	cr_assert_eq(chmod(folder, 0755), 0);
	cr_assert_eq(seteuid(1234), 0);
	cr_assert_eq(reread(), 0, "an image's profile is root's");
	cr_assert_eq(seteuid(0), 0);
	cr_assert_eq(chown(path_of(&profile), 4321, 4321), 0);
	cr_assert_eq(seteuid(1234), 0);
	cr_assert_eq(reread(), PROFILE_NONE, "uid 1234 trusts uid 4321");
	cr_assert_eq(seteuid(0), 0);
}

Test(profile_file, another_programs_profile_under_this_name_is_none)
{
	struct identity other = identity;
	char wanted[PROFILE_PATH_MAX];

	snprintf(wanted, sizeof(wanted), "%s", path_of(&profile));
	other.digest[DIGEST_SIZE - 1] ^= 1; /* the same file name */
	profile_init(&profile, &other);
	cr_assert_eq(profile_write(folder, &profile, NULL), 0);
	cr_assert_str_eq(path_of(&profile), wanted);
	cr_assert_eq(reread(), PROFILE_NONE);
}

Test(profile_file, an_extension_larger_than_the_readers_room)
{
	cr_assert_eq(extension_add(&extension, 1, folder, 100), 0);
	cr_assert_eq(profile_write(folder, &profile, &extension), 0);
	extension.room = 100;
	cr_assert_eq(reread(), -ENOSPC);
}

Test(profile_file, what_no_reader_would_take_is_not_written)
{
	profile.sections[0].recent = 33;
	cr_assert_eq(profile_write(folder, &profile, NULL), -EINVAL);
	profile.sections[0].recent = 0;
	extension.size = 8;
	memset(room, 0, 8); /* type 0 */
	cr_assert_eq(profile_write(folder, &profile, &extension), -EINVAL);
	cr_assert_eq(reread(), PROFILE_NONE);
}

static int count_entry(int at, const char *name, void *context)
{
	int *count = context;

	count[0] += folder_is_profile_name(name);
	count[1] += !strncmp(name, ".tmp-", 5);
	return 0;
}

Test(profile_file, a_failed_write_leaves_nothing_and_keeps_the_old_one)
{
	int counts[2] = {0};

	cr_assert_eq(profile_write(folder, &profile, NULL), 0);
	cr_assert_eq(unlink(path_of(&profile)), 0);
	cr_assert_eq(mkdir(path_of(&profile), 0700), 0); /* rename fails */
	cr_assert_lt(profile_write(folder, &profile, NULL), 0);
	cr_assert_eq(folder_walk(folder, count_entry, counts), 0);
	cr_assert_eq(counts[0], 1);
	cr_assert_eq(counts[1], 0);
}

Test(profile_file, writers_at_once_leave_one_whole_profile, .timeout = 60)
{
	enum { WRITERS = 8, ROUNDS = 40 };
	int counts[2] = {0}, status;
	struct observation run = {.model = "GPU", .is_used = true, .rank = -1};

	for (int i = 0; i < WRITERS; i++) {
		if (fork())
			continue;
		for (int round = 0; round < ROUNDS; round++)
			if (learn_run(folder, NULL, &identity, &run))
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < WRITERS; i++) {
		int rc;

		/* A reader meanwhile sees a whole one or, before the first rename, none. */
		for (int round = 0; round < 50; round++) {
			rc = profile_read(folder, identity.digest, &read_back, NULL);
			cr_assert(rc == 0 || rc == PROFILE_NONE, "%d", rc);
		}
		cr_assert_gt(wait(&status), 0);
		cr_assert_eq(status, 0);
	}
	cr_assert_eq(reread(), 0);
	cr_log_info("%u of %d runs were kept", read_back.sections[0].runs, WRITERS * ROUNDS);
	cr_assert_leq(read_back.sections[0].runs, WRITERS * ROUNDS);
	cr_assert_eq(folder_walk(folder, count_entry, counts), 0);
	cr_assert_eq(counts[0], 1);
	cr_assert_eq(counts[1], 0);
}

/* Writes profiles of made-up programs, used one second apart. */
static void write_many(int count)
{
	for (int i = 0; i < count; i++) {
		struct timespec times[2] = {{.tv_sec = 1000000 + i}, {.tv_sec = 1000000 + i}};

		memcpy(identity.digest, &i, sizeof(i));
		profile_init(&profile, &identity);
		cr_assert_eq(profile_write(folder, &profile, NULL), 0);
		cr_assert_eq(utimensat(AT_FDCWD, path_of(&profile), times, 0), 0);
	}
}

Test(profile_file, the_longest_unused_programs_go_first)
{
	int counts[2] = {0};

	write_many(100);
	cr_assert_eq(profile_prune(folder, 100, UINT64_MAX), 0);
	cr_assert_eq(profile_prune(folder, 30, UINT64_MAX), 70);
	cr_assert_eq(folder_walk(folder, count_entry, counts), 0);
	cr_assert_eq(counts[0], 30);
	for (int i = 0; i < 100; i++) {
		memcpy(identity.digest, &i, sizeof(i));
		cr_assert_eq(reread(), i < 70 ? PROFILE_NONE : 0, "%d", i);
	}
	cr_assert_eq(profile_prune(folder, 1000, 10 * sizeof(struct profile)), 20);
	cr_assert_eq(profile_prune(folder, 0, 0), 10);
}

Test(profile_file, the_folder_keeps_its_bound_by_itself, .timeout = 60)
{
	int counts[2] = {0};

	write_many(PROFILE_PROGRAMS_MAX + 20);
	cr_assert_eq(folder_walk(folder, count_entry, counts), 0);
	cr_assert_eq(counts[0], PROFILE_PROGRAMS_MAX);
}

Test(profile_file, pruning_leaves_strangers_and_takes_dead_writers_files)
{
	static const char *const names[] = {"README", "0123", ".tmp-new", ".tmp-old"};
	const struct timespec long_ago[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
	char path[4][200];

	cr_assert_eq(profile_write(folder, &profile, NULL), 0);
	for (int i = 0; i < 4; i++) {
		snprintf(path[i], sizeof(path[i]), "%s/%s", folder, names[i]);
		close(open(path[i], O_CREAT | O_WRONLY, 0600));
	}
	cr_assert_eq(utimensat(AT_FDCWD, path[3], long_ago, 0), 0);
	cr_assert_eq(profile_prune(folder, 0, 0), 1);
	cr_assert_eq(access(path[0], F_OK), 0);
	cr_assert_eq(access(path[1], F_OK), 0);
	cr_assert_eq(access(path[2], F_OK), 0);
	cr_assert_neq(access(path[3], F_OK), 0);
	cr_assert_eq(profile_prune("/nonexistent/folder", 0, 0), 0);
}

Test(profile_file, sections_by_driver_and_model)
{
	static const uint8_t first[PROFILE_BUILD_SIZE] = {1}, second[PROFILE_BUILD_SIZE] = {2};
	struct profile_section *section;

	cr_assert_eq(profile_section(&profile, first, "GPU"), &profile.sections[0]);
	cr_assert_eq(profile_section(&profile, first, NULL), &profile.sections[0]);
	cr_assert_null(profile_section(&profile, first, "GPU 2"));
	cr_assert_null(profile_section(&profile, second, NULL));
	section = profile_section_make(&profile, first, "GPU 2");
	cr_assert_eq(section, &profile.sections[1]);
	cr_assert_null(profile_section(&profile, first, NULL), "two models: which is not known");
	cr_assert_eq(profile_section_make(&profile, first, "GPU 2"), section);
	for (uint32_t i = 0; i < PROFILE_SECTIONS; i++)
		profile.sections[i].learned_s = i == 3 ? 1 : 100 + i;
	profile.section_count = PROFILE_SECTIONS;
	section = profile_section_make(&profile, second, "GPU");
	cr_assert_eq(section, &profile.sections[3], "the longest unused one goes");
	cr_assert_eq(section->ordinal, -1);
}

Test(profile_file, a_folder_whose_name_is_too_long)
{
	static char long_name[PROFILE_PATH_MAX + 10];

	memset(long_name, 'x', PROFILE_PATH_MAX);
	cr_assert_eq(profile_read(long_name, identity.digest, &read_back, NULL), -ENAMETOOLONG);
	cr_assert_eq(profile_write(long_name, &profile, NULL), -ENAMETOOLONG);
}

Test(profile_file, a_writer_notices_that_another_came_between)
{
	uint8_t none[DIGEST_SIZE], first[DIGEST_SIZE];
	int counts[2] = {0};

	cr_assert_eq(profile_seen(folder, profile.program, none), 0);
	cr_assert_eq(profile_replace(folder, &profile, NULL, none), 0);
	cr_assert_eq(profile_seen(folder, profile.program, first), 0);
	cr_assert_arr_neq(first, none, DIGEST_SIZE);
	cr_assert_eq(profile_replace(folder, &profile, NULL, none), PROFILE_CHANGED);
	profile.sections[0].runs = 7;
	cr_assert_eq(profile_replace(folder, &profile, NULL, first), 0);
	profile.sections[0].runs = 8;
	cr_assert_eq(profile_replace(folder, &profile, NULL, first), PROFILE_CHANGED);
	cr_assert_eq(profile_replace(folder, &profile, NULL, none), PROFILE_CHANGED);
	cr_assert_eq(reread(), 0);
	cr_assert_eq(read_back.sections[0].runs, 7);
	cr_assert_eq(profile_write(folder, &profile, NULL), 0);
	cr_assert_eq(folder_walk(folder, count_entry, counts), 0);
	cr_assert_eq(counts[0], 1);
	cr_assert_eq(counts[1], 0, "a temporary file was left");
}
