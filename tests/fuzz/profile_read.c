/* Fuzz target: a profile of arbitrary bytes is read, decided on, learned into and written.
 *
 * The first byte says what the rest is. Mutations of a whole file mostly fail at its digests, so
 * there are two more ways in:
 *   0  a file as it is
 *   1  a file whose digests and sizes are put right first
 *   2  changes to a good profile, four bytes each: offset (16 bit), value, what else to change
 * What must hold: no crash; what is sound stays sound after learning, and comes back from disk. */
#include "fuzz.h"

#include "profile/decide.h"
#include "profile/extension.h"
#include "profile/folder.h"
#include "profile/images_merge.h"
#include "profile/learn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AS_IT_IS, PUT_RIGHT, CHANGES, WAYS };

static char folder[] = "/tmp/hearth-fuzz-XXXXXX";
static _Alignas(8) uint8_t room[PROFILE_EXTENSION_MAX], read_room[PROFILE_EXTENSION_MAX];
static struct images_draft seen, merged;

static void remove_folder(void)
{
	profile_prune(folder, 0, 0);
	rmdir(folder);
}

static void make_folder(void)
{
	static bool is_made;

	if (is_made)
		return;
	is_made = true;
	FUZZ_HOLDS(mkdtemp(folder));
	atexit(remove_folder);
}

static void put_right(struct profile *profile, const struct profile_extension *extension)
{
	profile->extension_size = extension->size;
	profile->file_size = (uint32_t)sizeof(*profile) + extension->size;
	digest_of(extension->data, extension->size, profile->extension_digest);
	digest_of(&profile->extension_digest,
		sizeof(*profile) - offsetof(struct profile, extension_digest),
		profile->head_digest);
}

/* A list with one image of each kind, each with a kernel. */
static void make_images(const struct profile *profile, struct profile_extension *extension)
{
	const struct profile_section *section = &profile->sections[0];

	images_draft_begin(&seen);
	seen.file_count = 1;
	seen.files[0] = (struct image_file){.kind = IMAGE_FILE_BUILD_ID,
		.path = images_draft_text(&seen, "/lib/libtorch_cuda.so"),
		.from_started = images_draft_text(&seen, "../lib/libtorch_cuda.so")};
	for (uint32_t i = 0; i < 2; i++) {
		seen.images[seen.image_count++] = (struct image){.size = 4096,
			.offset = i ? 0 : 65536,
			.wrapper = i ? IMAGES_NO_OFFSET : 131072,
			.digest_size = 4096,
			.file = i ? IMAGES_NO_FILE : 0,
			.entry = IMAGE_LIBRARY_DATA,
			.form = i ? IMAGE_ELF : IMAGE_WRAPPED,
			.option_count = 1,
			.options = {{1, !i}},
			.flags = i ? IMAGE_HAS_NO_VALUES : 0,
			.jit_count = i,
			.jit_options = {{7, 3}},
			.refused = IMAGES_NO_OPTION};
		seen.kernels[seen.kernel_count++] = (struct image_kernel){
			.name = images_draft_text(&seen, i ? "gemm" : "add"), .image = i};
	}
	FUZZ_HOLDS(images_write(extension, profile, images_key(section->build_id, section->model),
			   &seen) == 0);
}

static void make_good(struct profile *profile, struct profile_extension *extension)
{
	struct identity identity = {.kind = IDENTITY_SCRIPT, .name = "train.py"};
	struct observation run = {
		.model = "GPU",
		.is_used = true,
		.start_lead_us = 2900000,
		.lookup_lead_us = 2700000,
		.visible_count = 2,
		.rank = DECIDE_NO_RANK,
		.context_count = 2,
		.contexts = {{.kind = PROFILE_PRIMARY}, {PROFILE_CREATED, 4, 8, 1}},
	};

	profile_init(profile, &identity);
	extension->size = 0;
	for (uint32_t i = 0; i < 3; i++) {
		learn(profile, &run);
		run.build_id[0]++;
		extension_add(extension, i + 1, "payload", i * 3);
	}
	make_images(profile, extension);
	put_right(profile, extension);
}

/* The bytes as a file; false where they are too few. */
static bool load(const uint8_t *data, size_t size, struct profile *profile,
	struct profile_extension *extension)
{
	if (size < sizeof(*profile))
		return false;
	memcpy(profile, data, sizeof(*profile));
	extension->size = (uint32_t)(size - sizeof(*profile));
	memcpy(extension->data, data + sizeof(*profile), extension->size);
	return true;
}

static void change(const uint8_t *data, size_t size, struct profile *profile,
	struct profile_extension *extension)
{
	for (; size >= 4; data += 4, size -= 4) {
		size_t at = (size_t)data[0] | (size_t)data[1] << 8;

		if (data[3] & 1 && extension->size)
			extension->data[at % extension->size] = data[2];
		else
			((uint8_t *)profile)[at % sizeof(*profile)] = data[2];
		if (data[3] & 2 && extension->size)
			extension->size -= data[3] % extension->size;
	}
}

static void decide_on(const struct profile *profile)
{
	static const struct device_state devices[8];

	for (uint32_t i = 0; i < profile->section_count * 8; i++) {
		struct situation situation = {
			.section = &profile->sections[i / 8],
			.kind = (enum identity_kind)profile->kind,
			.is_undo_proven = true,
			.is_getenv_redirected = i & 1,
			.mode = i & 2 ? SPECULATE_ALWAYS : SPECULATE_AUTO,
			.is_chosen = i & 4,
			.is_eager = i & 4,
			.contexts = (enum context_mode)(i % 3),
		};
		struct start_decision start;
		struct device_decision device;
		int visible = (int)(i % 9);

		decide_start(&situation, &start);
		FUZZ_HOLDS(start.reason);
		decide_device(&situation, visible, (int)(i % 11) - 2, devices, &device);
		FUZZ_HOLDS(device.reason && device.device < visible);
		FUZZ_HOLDS(device.context_count <= PROFILE_CONTEXTS);
		FUZZ_HOLDS((device.device >= 0) == (device.context_count > 0));
	}
}

/* Writing and reading is slow, so it is done for some of the inputs only. */
static void learn_into(
	struct profile *profile, const struct profile_extension *extension, bool is_written)
{
	struct observation run = {
		.model = "GPU",
		.is_used = profile->reserved[0] || profile->section_count & 1,
		.visible_count = 4,
		.rank = (int)(profile->section_count % 4) - 2,
		.context_count = 1,
		.contexts = {{.kind = PROFILE_PRIMARY, .device = 3}},
		.outcome = (enum learn_outcome)(profile->name[0] % 5),
	};
	struct profile_extension read_extension = {.data = read_room, .room = sizeof(read_room)};
	struct profile read_back;

	if (profile->section_count) /* the same section, so that its numbers are used */
		memcpy(run.build_id, profile->sections[0].build_id, sizeof(run.build_id));
	learn(profile, &run);
	put_right(profile, extension);
	FUZZ_HOLDS(profile_is_sound(profile) && profile_extension_is_sound(profile, extension));
	if (!is_written)
		return;
	FUZZ_HOLDS(profile_write(folder, profile, extension) == 0);
	FUZZ_HOLDS(profile_read(folder, profile->program, &read_back, &read_extension) == 0);
	FUZZ_HOLDS(!memcmp(&read_back, profile, sizeof(read_back)));
	FUZZ_HOLDS(read_extension.size == extension->size);
	profile_prune(folder, 0, 0);
}

static void walk(struct profile_extension *extension)
{
	struct extension_record record;
	uint32_t cursor = 0, count = 0, removed, size = extension->size;

	while (extension_next(extension, &cursor, &record)) {
		FUZZ_HOLDS(record.at < size && record.length <= size - record.at);
		count += record.type == 1;
	}
	FUZZ_HOLDS(cursor == size);
	removed = extension_remove(extension, 1);
	FUZZ_HOLDS(removed == count);
	FUZZ_HOLDS(extension_is_walkable(extension->data, extension->size));
}

/* All that a reader follows lies inside; a run that loaded nothing leaves a list that can be
 * written and read again. */
static void follow_images(const struct profile *profile, struct profile_extension *extension)
{
	struct images list, again;
	uint32_t cursor = 0;
	uint64_t key = 0;
	bool is_found = false;

	while (images_next(extension, &cursor, &list)) {
		for (uint32_t i = 0; i < list.head->image_count; i++) {
			const struct image *image = &list.images[i];

			if (image->file != IMAGES_NO_FILE)
				FUZZ_HOLDS(strlen(list.text + list.files[image->file].path) <
					   list.head->text_size);
			for (uint32_t at = 0; at < image->kernel_count; at++)
				FUZZ_HOLDS(*(list.text +
						   list.kernels[image->kernel_first + at].name) !=
					   '\x7f');
			FUZZ_HOLDS(*image_entry_name((enum image_entry)image->entry) == 'c');
		}
		key = list.head->key;
		is_found = true;
		images_draft_begin(&seen);
		images_merge(&list, &seen, true, &merged);
	}
	if (!is_found)
		return;
	FUZZ_HOLDS(images_write(extension, profile, key, &merged) == 0);
	FUZZ_HOLDS(images_find(extension, key, &again) == 0);
	FUZZ_HOLDS(again.head->image_count == merged.image_count);
}

/* Through the file system, as a program would read it. */
static void read_as_file(const uint8_t *data, size_t size)
{
	struct profile_extension extension = {.data = read_room, .room = sizeof(read_room)};
	struct profile profile;
	char path[64];
	FILE *file;
	int rc;

	snprintf(path, sizeof(path), "%s/0123456789abcdef0123456789abcdef", folder);
	file = fopen(path, "wb");
	FUZZ_HOLDS(file);
	fwrite(data, 1, size, file);
	fclose(file);
	rc = profile_read_file(path, &profile, &extension);
	FUZZ_HOLDS(rc == 0 || rc == PROFILE_NONE);
	if (!rc)
		FUZZ_HOLDS(profile_is_sound(&profile) && profile.file_size == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile_extension extension = {.data = room, .room = sizeof(room)};
	struct profile profile;
	int way;

	make_folder();
	if (!size || size > FUZZ_SIZE_MAX)
		return 0;
	way = *data++ % WAYS;
	size--;
	if (way == AS_IT_IS)
		read_as_file(data, size);
	if (way == CHANGES) {
		make_good(&profile, &extension);
		change(data, size, &profile, &extension);
	} else if (!load(data, size, &profile, &extension)) {
		return 0;
	}
	if (way != AS_IT_IS)
		put_right(&profile, &extension);
	if (!profile_is_sound(&profile) || !profile_extension_is_sound(&profile, &extension))
		return 0;
	decide_on(&profile);
	follow_images(&profile, &extension);
	put_right(&profile, &extension);
	walk(&extension);
	learn_into(&profile, &extension, size % 16 == 0);
	return 0;
}

/* One whole file for each of the first two ways, then changes of various lengths. */
size_t fuzz_seed(uint32_t index, uint8_t ret_data[FUZZ_SIZE_MAX])
{
	struct profile_extension extension = {.data = room, .room = sizeof(room)};
	struct profile profile;
	size_t size = 1 + 4 * (size_t)index;

	if (index >= 10)
		return 0;
	memset(ret_data, 0, FUZZ_SIZE_MAX);
	ret_data[0] = index < WAYS ? (uint8_t)index : CHANGES;
	if (ret_data[0] == CHANGES) {
		for (size_t i = 1; i < size; i++)
			ret_data[i] = (uint8_t)(i * 37 + index);
		return size;
	}
	make_good(&profile, &extension);
	memcpy(ret_data + 1, &profile, sizeof(profile));
	memcpy(ret_data + 1 + sizeof(profile), extension.data, extension.size);
	return 1 + sizeof(profile) + extension.size;
}
