/* The list of files in a profile's extension area. Pure functions over the caller's memory but for
 * files_learn; in the user's process on threads of our own. Must believe nothing that a list says
 * before it is checked. */
#include "profile/files.h"

#include "profile/extension.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define TRIES 8 /* then the last writer wins */

static bool is_text_sound(const char *text, uint32_t size)
{
	if (!size || size > FILES_TEXT_MAX || text[0] || text[size - 1])
		return false;
	for (uint32_t i = 0; i < size; i++)
		if (text[i] && ((unsigned char)text[i] < ' ' || text[i] == '\x7f'))
			return false;
	return true;
}

static bool is_file_sound(const struct files_head *head, const struct files_file *file)
{
	return file->folder < head->text_size && file->name && file->name < head->text_size &&
	       file->range_first <= head->range_count &&
	       file->range_count <= head->range_count - file->range_first;
}

static uint64_t size_of(const struct files_head *head)
{
	return sizeof(*head) + (uint64_t)head->file_count * sizeof(struct files_file) +
	       (uint64_t)head->range_count * sizeof(struct files_range) + head->text_size;
}

static bool read_list(const struct extension_record *record, struct files *ret_files)
{
	const struct files_head *head = record->payload;
	struct files list = {.head = head};
	uint64_t units = 0;

	if (record->length < sizeof(*head) || (uintptr_t)head % _Alignof(struct files_file) ||
		head->version != FILES_VERSION || head->file_count > FILES_MAX ||
		head->range_count > FILES_RANGES_MAX || head->text_size > FILES_TEXT_MAX ||
		record->length != size_of(head))
		return false;
	list.files = (const struct files_file *)(head + 1);
	list.ranges = (const struct files_range *)(list.files + head->file_count);
	list.text = (const char *)(list.ranges + head->range_count);
	if (!is_text_sound(list.text, head->text_size))
		return false;
	for (uint32_t i = 0; i < head->file_count; i++)
		if (!is_file_sound(head, &list.files[i]))
			return false;
	for (uint32_t i = 0; i < head->range_count; i++)
		units += list.ranges[i].count;
	if (units > FILES_UNITS_MAX)
		return false;
	*ret_files = list;
	return true;
}

int files_find(const struct profile_extension *extension, struct files *ret_files)
{
	struct extension_record record;
	uint32_t cursor = 0;

	while (extension_next(extension, &cursor, &record))
		if (record.type == FILES_RECORD && read_list(&record, ret_files))
			return 0;
	return PROFILE_NONE;
}

bool files_path(const struct files *files, const struct files_file *file, char ret_path[PATH_MAX])
{
	const char *folder = files->text + file->folder, *name = files->text + file->name;
	size_t folder_size = strlen(folder), name_size = strlen(name);

	if (folder_size + 1 + name_size >= PATH_MAX)
		return false;
	memcpy(ret_path, folder, folder_size);
	ret_path[folder_size] = '/';
	memcpy(ret_path + folder_size + 1, name, name_size + 1);
	return true;
}

/* The offset of the text in the draft, 0 where there is no room. */
static uint32_t keep(struct files_draft *draft, const char *text, size_t length)
{
	uint32_t at = draft->text_size;

	if (length >= FILES_TEXT_MAX - at)
		return 0;
	memcpy(draft->text + at, text, length);
	draft->text[at + length] = '\0';
	draft->text_size += (uint32_t)length + 1;
	return at;
}

static bool is_storable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '\x7f')
			return false;
	return true;
}

bool files_draft_add(struct files_draft *draft, const char *path, uint64_t size)
{
	const char *slash = strrchr(path, '/');
	const struct files_file *before = draft->files + draft->file_count - 1;
	struct files_file file = {.size = size, .range_first = draft->range_count};
	uint32_t kept = draft->text_size;
	size_t length = slash ? (size_t)(slash - path) : 0;

	if (!draft->text_size)
		draft->text_size = 1; /* "" */
	if (!slash || path[0] != '/' || !slash[1] || draft->file_count >= FILES_MAX ||
		!is_storable(path))
		return false;
	if (draft->file_count && !strncmp(draft->text + before->folder, path, length) &&
		!draft->text[before->folder + length])
		file.folder = before->folder;
	else if (length)
		file.folder = keep(draft, path, length);
	file.name = keep(draft, slash + 1, strlen(slash + 1));
	if ((length && !file.folder) || !file.name) {
		draft->text_size = kept;
		return false;
	}
	draft->files[draft->file_count++] = file;
	return true;
}

bool files_draft_range(struct files_draft *draft, uint32_t first, uint32_t count)
{
	if (!draft->file_count || draft->range_count >= FILES_RANGES_MAX ||
		count > FILES_UNITS_MAX - draft->unit_count)
		return false;
	draft->ranges[draft->range_count++] = (struct files_range){first, count};
	draft->files[draft->file_count - 1].range_count++;
	draft->unit_count += count;
	return true;
}

void files_draft_drop(struct files_draft *draft)
{
	const struct files_file *file = &draft->files[draft->file_count - 1];

	for (uint32_t i = 0; i < file->range_count; i++)
		draft->unit_count -= draft->ranges[file->range_first + i].count;
	draft->range_count = file->range_first;
	draft->file_count--;
}

void files_draft_reverse(struct files_draft *draft, uint32_t first)
{
	for (uint32_t last = draft->file_count; last > first + 1; first++) {
		struct files_file file = draft->files[first];

		draft->files[first] = draft->files[--last];
		draft->files[last] = file;
	}
}

int files_write(struct profile_extension *extension, const struct files_draft *draft)
{
	struct files_head head = {
		.version = FILES_VERSION,
		.file_count = draft->file_count,
		.range_count = draft->range_count,
		.text_size = draft->text_size,
	};
	size_t files = draft->file_count * sizeof(draft->files[0]),
	       ranges = draft->range_count * sizeof(draft->ranges[0]);
	void *payload;
	uint8_t *at;
	int rc;

	extension_remove(extension, FILES_RECORD);
	if (!draft->file_count)
		return 0;
	rc = extension_reserve(extension, FILES_RECORD, (uint32_t)size_of(&head), &payload);
	if (rc)
		return rc;
	at = payload;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), draft->files, files);
	memcpy(at + sizeof(head) + files, draft->ranges, ranges);
	memcpy(at + sizeof(head) + files + ranges, draft->text, draft->text_size);
	return 0;
}

bool files_are_due(const struct profile *profile, const struct profile_extension *extension)
{
	struct files files;
	uint32_t runs = 0;

	for (uint32_t i = 0; i < profile->section_count; i++)
		runs += profile->sections[i].runs;
	return !(runs & (runs - 1)) || files_find(extension, &files);
}

static int try_once(const char *folder, const char *system_folder, const struct identity *identity,
	const struct files_draft *draft, struct profile_extension *extension, bool is_last)
{
	uint8_t seen[DIGEST_SIZE];
	struct profile profile;
	int rc = profile_seen(folder, identity->digest, seen);

	if (!rc)
		rc = profile_find(folder, system_folder, identity->digest, &profile, extension);
	if (!rc)
		rc = files_write(extension, draft);
	return rc ? rc : profile_replace(folder, &profile, extension, is_last ? NULL : seen);
}

int files_learn(const char *folder, const char *system_folder, const struct identity *identity,
	const struct files_draft *draft)
{
	struct profile_extension extension = {.room = PROFILE_EXTENSION_MAX};
	int rc = PROFILE_CHANGED;

	extension.data = mmap(NULL, extension.room, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (extension.data == MAP_FAILED)
		return -errno;
	for (int i = 1; i <= TRIES && rc == PROFILE_CHANGED; i++)
		rc = try_once(folder, system_folder, identity, draft, &extension, i == TRIES);
	munmap(extension.data, extension.room);
	return rc;
}
