/* Images and kernels as text and JSON. In tools only; allocates. */
#include "report/profiles_images.h"

#include "profile/images.h"
#include "report/figure.h"
#include "report/table.h"

#include <stdlib.h>
#include <string.h>

#define KIB 1024.0

static bool find_list(const struct profiles_entry *entry, const struct profile_section *section,
	struct images *ret_list)
{
	return entry->extension.data &&
	       !images_find(
		       &entry->extension, images_key(section->build_id, section->model), ret_list);
}

static const char *path_of(const struct images *list, const struct image *image)
{
	return image->file == IMAGES_NO_FILE ? NULL : list->text + list->files[image->file].path;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void print_kernels(const struct images *list, FILE *to)
{
	for (uint32_t i = 0; i < list->head->kernel_count; i++) {
		char *name = table_text_clean(list->text + list->kernels[i].name);

		fprintf(to, "    %3u  %s\n", list->kernels[i].image + 1, name ? name : "");
		free(name);
	}
}

void profiles_print_images(
	const struct profiles_entry *entry, const struct profile_section *section, FILE *to)
{
	static const struct table_column columns[] = {
		{"    image", TABLE_RIGHT, 0},
		{"file", TABLE_LEFT, 48},
		{"offset", TABLE_RIGHT, 0},
		{"KiB", TABLE_RIGHT, 0},
		{"loads", TABLE_RIGHT, 0},
		{"takes", TABLE_RIGHT, 0},
		{"kernels", TABLE_RIGHT, 0},
		{"unused runs", TABLE_RIGHT, 0},
		{"by", TABLE_LEFT, 0},
		{"", TABLE_LEFT, 0},
	};
	struct table *table;
	struct images list;

	if (!find_list(entry, section, &list) || !list.head->image_count)
		return;
	fprintf(to, "  loads, in order of first use\n");
	table = table_new(sizeof(columns) / sizeof(columns[0]), columns);
	for (uint32_t i = 0; i < list.head->image_count; i++) {
		const struct image *image = &list.images[i];
		const char *path = path_of(&list, image);
		char text[FIGURE_SIZE], reason[IMAGE_REASON_SIZE];

		table_cell(table, "%u", i + 1);
		table_cell(table, "%s", path ? base_name(path) : "on the heap");
		if (path)
			table_cell(table, "0x%llx", (unsigned long long)image->offset);
		else
			table_cell(table, "%s", "");
		table_cell(table, "%.1f", (double)image->size / KIB);
		table_cell(table, "%u", image->count);
		table_cell(table, "%s", figure_time(image->load_us, text));
		table_cell(table, "%u", image->kernel_count);
		table_cell(table, "%u", image->age);
		table_cell(table, "%s", image_entry_name((enum image_entry)image->entry));
		table_cell(table, "%s", image_reason(image, reason));
	}
	table_print(table, to);
	table_free(table);
	if (list.head->kernel_count) {
		fprintf(to, "  kernels, each with the image that it is from\n");
		print_kernels(&list, to);
	}
}

static json_t *string_json(const char *text)
{
	char *clean = text ? table_text_clean(text) : NULL;
	json_t *json = clean ? json_string(clean) : json_null();

	free(clean);
	return json;
}

static json_t *digest_json(const uint8_t *bytes, size_t size)
{
	char text[2 * DIGEST_SIZE + 1];

	digest_format(bytes, size, text);
	return json_string(text);
}

/* Without the zeros that fill it up. */
static json_t *build_id_json(const struct image_file *file)
{
	size_t size = sizeof(file->identity);

	while (size > 1 && !file->identity[size - 1])
		size--;
	return digest_json(file->identity, size);
}

static json_t *kernels_json(const struct images *list, const struct image *image)
{
	json_t *kernels = json_array();

	for (uint32_t i = 0; i < image->kernel_count; i++) {
		const struct image_kernel *kernel = &list->kernels[image->kernel_first + i];

		json_array_append_new(kernels,
			json_pack("{s:o,s:b,s:I}", "name", string_json(list->text + kernel->name),
				"function", kernel->flags & IMAGE_KERNEL_FUNCTION, "unused_runs",
				(json_int_t)kernel->age));
	}
	return kernels;
}

static json_t *options_json(const struct image_option *from, uint32_t count, bool has_values)
{
	json_t *options = json_array();

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(
			options, json_pack("[I,o]", (json_int_t)from[i].option,
					 has_values ? json_integer(from[i].value) : json_null()));
	return options;
}

static json_t *image_json(const struct images *list, const struct image *image)
{
	const struct image_file *file =
		image->file == IMAGES_NO_FILE ? NULL : &list->files[image->file];
	bool has_build_id = file && file->kind == IMAGE_FILE_BUILD_ID;
	bool has_values = !(image->flags & IMAGE_HAS_NO_VALUES);
	char reason[IMAGE_REASON_SIZE];
	bool has_wrapper = image->wrapper != IMAGES_NO_OFFSET;

	return json_pack("{s:o,s:o,s:o,s:o,s:I,s:o,s:s,s:b,s:b,s:s,s:o,s:o,s:I,s:I,s:I,s:i,s:o}",
		"file", string_json(path_of(list, image)), "build_id",
		has_build_id ? build_id_json(file) : json_null(), "offset",
		file ? json_integer((json_int_t)image->offset) : json_null(), "wrapper",
		has_wrapper ? json_integer((json_int_t)image->wrapper) : json_null(), "size",
		(json_int_t)image->size, "digest", digest_json(image->digest, DIGEST_SIZE), "entry",
		image_entry_name((enum image_entry)image->entry), "jit",
		image->flags & IMAGE_IS_JIT, "replayable", image_is_replayable(image), "reason",
		image_reason(image, reason), "options",
		options_json(image->options, image->option_count, has_values), "jit_options",
		options_json(image->jit_options, image->jit_count, true), "load_us",
		(json_int_t)image->load_us, "loads", (json_int_t)image->count, "unused_runs",
		(json_int_t)image->age, "device", image->device, "kernels",
		kernels_json(list, image));
}

json_t *profiles_images_json(
	const struct profiles_entry *entry, const struct profile_section *section)
{
	struct images list;
	json_t *images;

	if (!entry->extension.data)
		return NULL;
	images = json_array();
	if (find_list(entry, section, &list))
		for (uint32_t i = 0; i < list.head->image_count; i++)
			json_array_append_new(images, image_json(&list, &list.images[i]));
	return images;
}
