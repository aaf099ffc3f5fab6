/* Files that are read ahead, as text and JSON. In tools only; allocates. */
#include "report/profiles_files.h"

#include "profile/files.h"
#include "report/figure.h"
#include "report/table.h"

#include <stdlib.h>

/* A range is counted in units; the last one may reach beyond the file's end. */
static uint64_t range_end(const struct files_file *file, const struct files_range *range)
{
	uint64_t end = ((uint64_t)range->first + range->count) * FILES_UNIT;

	return end < file->size ? end : file->size;
}

static uint64_t range_bytes(const struct files_file *file, const struct files_range *range)
{
	uint64_t start = (uint64_t)range->first * FILES_UNIT, end = range_end(file, range);

	return end > start ? end - start : 0;
}

static uint64_t read_bytes(const struct files *list, const struct files_file *file)
{
	uint64_t sum = 0;

	if (!file->range_count)
		return file->size;
	for (uint32_t i = 0; i < file->range_count; i++)
		sum += range_bytes(file, &list->ranges[file->range_first + i]);
	return sum;
}

static bool is_whole_in(const struct files_file *file, uint32_t folder)
{
	return !file->range_count && file->folder == folder;
}

static void add_row(
	struct table *table, uint64_t bytes, uint64_t size, uint32_t count, const char *path)
{
	char text[FIGURE_SIZE];

	table_cell(table, "%s", figure_size(bytes, text));
	table_cell(table, "%s", figure_size(size, text));
	if (count > 1)
		table_cell(table, "%u files in %s", count, path);
	else
		table_cell(table, "%s", path);
}

/* Those of the same folder make one row, where the first of them is. */
static void add_whole(struct table *table, const struct files *list, uint32_t at)
{
	uint32_t folder = list->files[at].folder, count = 0;
	char path[PATH_MAX];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < list->head->file_count; i++) {
		if (!is_whole_in(&list->files[i], folder))
			continue;
		if (i < at)
			return;
		bytes += list->files[i].size;
		count++;
	}
	if (count > 1)
		add_row(table, bytes, bytes, count, list->text + folder);
	else if (files_path(list, &list->files[at], path))
		add_row(table, bytes, bytes, 1, path);
}

void profiles_print_files(const struct profiles_entry *entry, FILE *to)
{
	static const struct table_column columns[] = {
		{"    reads", TABLE_RIGHT, 0},
		{"of", TABLE_RIGHT, 0},
		{"file", TABLE_LEFT, 0},
	};
	struct table *table;
	struct files list;
	uint64_t bytes = 0;
	char path[PATH_MAX], text[FIGURE_SIZE];

	if (!entry->extension.data || files_find(&entry->extension, &list) ||
		!list.head->file_count)
		return;
	table = table_new(sizeof(columns) / sizeof(columns[0]), columns);
	for (uint32_t i = 0; i < list.head->file_count; i++) {
		const struct files_file *file = &list.files[i];

		bytes += read_bytes(&list, file);
		if (!file->range_count)
			add_whole(table, &list, i);
		else if (files_path(&list, file, path))
			add_row(table, read_bytes(&list, file), file->size, 1, path);
	}
	fprintf(to, "reads ahead what is not in memory: %u file%s, %s\n", list.head->file_count,
		list.head->file_count == 1 ? "" : "s", figure_size(bytes, text));
	table_print(table, to);
	table_free(table);
}

static json_t *ranges_json(const struct files *list, const struct files_file *file)
{
	json_t *ranges = json_array();

	for (uint32_t i = 0; i < file->range_count; i++) {
		const struct files_range *range = &list->ranges[file->range_first + i];

		json_array_append_new(
			ranges, json_pack("[I,I]", (json_int_t)range->first * FILES_UNIT,
					(json_int_t)range_bytes(file, range)));
	}
	return ranges;
}

json_t *profiles_files_json(const struct profiles_entry *entry)
{
	struct files list;
	json_t *files;

	if (!entry->extension.data)
		return NULL;
	files = json_array();
	if (files_find(&entry->extension, &list))
		return files;
	for (uint32_t i = 0; i < list.head->file_count; i++) {
		const struct files_file *file = &list.files[i];
		char path[PATH_MAX], *clean;

		if (!files_path(&list, file, path))
			continue;
		clean = table_text_clean(path);
		json_array_append_new(
			files, json_pack("{s:s?,s:I,s:o}", "path", clean, "size",
				       (json_int_t)file->size, "ranges",
				       file->range_count ? ranges_json(&list, file) : json_null()));
		free(clean);
	}
	return files;
}
