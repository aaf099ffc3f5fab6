/* What a spare rests on, on the disk. Runs in the process that holds it. The change time counts,
 * which no program can set back. */
#include "spare/manifest.h"

#include "base/settings.h"
#include "base/state_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* File times are the kernel's last tick: up to 10 ms behind the clock. */
#define TICK_US 20000
#define MOST_BYTES (64u << 20)
#define US_PER_S 1000000

struct manifest_entry {
	const char *name;
	dev_t device;
	ino_t inode; /* 0 where there is none of that name */
	off_t size;
	struct timespec changed;
};

static void look(struct manifest_entry *entry)
{
	struct stat info;

	if (stat(entry->name, &info))
		info = (struct stat){0};
	entry->device = info.st_dev;
	entry->inode = info.st_ino;
	entry->size = S_ISDIR(info.st_mode) ? 0 : info.st_size;
	entry->changed = info.st_ctim;
}

static int64_t in_us(const struct timespec *time)
{
	return (int64_t)time->tv_sec * US_PER_S + time->tv_nsec / 1000;
}

static int read_names(int fd, char **ret_names, size_t *ret_size)
{
	struct stat info;
	size_t size = 0;
	char *names;

	if (fstat(fd, &info))
		return -errno;
	if (info.st_size > MOST_BYTES)
		return -E2BIG;
	names = malloc((size_t)info.st_size + 1);
	if (!names)
		return -ENOMEM;
	while (size < (size_t)info.st_size) {
		ssize_t got = pread(fd, names + size, (size_t)info.st_size - size, (off_t)size);

		if (got <= 0) {
			free(names);
			return got ? -errno : -EIO;
		}
		size += (size_t)got;
	}
	names[size] = '\0';
	*ret_names = names;
	*ret_size = size;
	return 0;
}

/* What Hearth has learned changes with every run, and is checked by its content where it is used.
 */
static bool is_below(const char *folder, const char *name)
{
	size_t length = strlen(folder);

	return length && !strncmp(name, folder, length) && name[length] == '/';
}

int manifest_take(int fd, const struct timespec *start, struct manifest *ret_manifest,
	char ret_name[PATH_MAX])
{
	struct manifest manifest = {0};
	char learned[PATH_MAX] = "";
	struct settings settings;
	size_t size = 0, count = 0;
	const char *end;
	int rc = read_names(fd, &manifest.names, &size);

	if (rc)
		return rc;
	settings_read(&settings);
	if (state_dir_path(&settings, learned, sizeof(learned)))
		learned[0] = '\0';
	end = manifest.names + size;
	for (size_t i = 0; i < size; i++)
		count += !manifest.names[i];
	manifest.entries = calloc(count + 1, sizeof(*manifest.entries));
	if (!manifest.entries)
		rc = -ENOMEM;
	for (char *name = manifest.names; !rc && name < end; name += strlen(name) + 1) {
		struct manifest_entry *entry = &manifest.entries[manifest.count];
		static const char gone[] = " (deleted)";
		size_t length = strlen(name);

		if (is_below(learned, name))
			continue;
		manifest.count++;
		entry->name = name;
		look(entry);
		if (in_us(&entry->changed) > in_us(start) - TICK_US ||
			(length > strlen(gone) && !strcmp(name + length - strlen(gone), gone))) {
			rc = -ESTALE;
			strncpy(ret_name, name, PATH_MAX - 1);
			ret_name[PATH_MAX - 1] = '\0';
		}
	}
	if (rc) {
		manifest_done(&manifest);
		return rc;
	}
	*ret_manifest = manifest;
	return 0;
}

int manifest_check(const struct manifest *manifest)
{
	for (size_t i = 0; i < manifest->count; i++) {
		const struct manifest_entry *was = &manifest->entries[i];
		struct manifest_entry now = {.name = was->name};

		look(&now);
		if (now.device != was->device || now.inode != was->inode || now.size != was->size ||
			in_us(&now.changed) != in_us(&was->changed))
			return -ESTALE;
	}
	return 0;
}

void manifest_done(struct manifest *manifest)
{
	free(manifest->names);
	free(manifest->entries);
	*manifest = (struct manifest){0};
}
