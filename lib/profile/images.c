/* The lists of images and kernels in a profile's extension area. Pure functions over the caller's
 * memory; in the user's process on the speculative thread and when a run is learned, and in tools.
 * Must believe nothing that a list says before it is checked. */
#include "profile/images.h"

#include "profile/extension.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *image_entry_name(enum image_entry entry)
{
	static const char *const names[IMAGE_ENTRY_COUNT] = {
		[IMAGE_LIBRARY_DATA] = "cuLibraryLoadData",
		[IMAGE_LIBRARY_FILE] = "cuLibraryLoadFromFile",
		[IMAGE_MODULE_DATA] = "cuModuleLoadData",
		[IMAGE_MODULE_DATA_EX] = "cuModuleLoadDataEx",
		[IMAGE_MODULE_FATBIN] = "cuModuleLoadFatBinary",
		[IMAGE_MODULE_FILE] = "cuModuleLoad",
	};

	return entry < IMAGE_ENTRY_COUNT && names[entry] ? names[entry] : "unknown";
}

uint64_t images_key(const uint8_t build_id[PROFILE_BUILD_SIZE], const char *model)
{
	struct digest_state state;
	uint8_t digest[DIGEST_SIZE];
	uint64_t key;

	digest_init(&state);
	digest_update(&state, build_id, PROFILE_BUILD_SIZE);
	digest_text(&state, model);
	digest_final(&state, digest);
	memcpy(&key, digest, sizeof(key));
	return key;
}

/* Goes to terminals and is opened as a path. */
static bool is_clean(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == '\x7f')
			return false;
	return true;
}

static bool are_texts_sound(const char *text, uint32_t size)
{
	uint32_t at = 0;

	if (!size || size > IMAGES_TEXT_MAX || text[0] || text[size - 1])
		return false;
	while (at < size) {
		uint32_t length = (uint32_t)strlen(text + at);

		if (!is_clean(text + at, length))
			return false;
		at += length + 1;
	}
	return true;
}

static bool is_file_sound(const struct images *list, const struct image_file *file)
{
	uint32_t size = list->head->text_size;

	return file->kind >= IMAGE_FILE_BUILD_ID && file->kind < IMAGE_FILE_KIND_COUNT &&
	       file->path < size && file->from_executable < size && file->from_started < size;
}

static bool is_place_sound(const struct images *list, const struct image *image)
{
	if (!image->size || image->size > IMAGES_SIZE_MAX || image->digest_size > image->size)
		return false;
	if (image->file == IMAGES_NO_FILE)
		return image->offset == 0 && image->wrapper == IMAGES_NO_OFFSET &&
		       image->digest_size == image->size;
	return image->file < list->head->file_count && image->digest_size &&
	       image->offset <= INT64_MAX - image->size &&
	       (image->wrapper == IMAGES_NO_OFFSET || image->wrapper <= INT64_MAX);
}

static bool is_image_sound(const struct images *list, const struct image *image)
{
	uint32_t kernels = list->head->kernel_count;

	return is_place_sound(list, image) && image->entry >= IMAGE_LIBRARY_DATA &&
	       image->entry < IMAGE_ENTRY_COUNT && image->form >= IMAGE_WRAPPED &&
	       image->form < IMAGE_FORM_COUNT && !(image->flags & ~IMAGE_FLAGS) &&
	       image->age <= IMAGES_AGE_MAX && image->device >= -1 &&
	       image->option_count <= IMAGES_OPTIONS_MAX &&
	       image->jit_count <= IMAGES_JIT_OPTIONS_MAX && image->kernel_first <= kernels &&
	       image->kernel_count <= kernels - image->kernel_first;
}

/* Each kernel lies in its image's range, and the ranges follow each other. */
static bool are_kernels_sound(const struct images *list)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < list->head->image_count; i++) {
		if (list->images[i].kernel_first != next)
			return false;
		next += list->images[i].kernel_count;
		for (uint32_t at = list->images[i].kernel_first; at < next; at++)
			if (list->kernels[at].image != i || !list->kernels[at].name ||
				list->kernels[at].name >= list->head->text_size ||
				list->kernels[at].flags & ~IMAGE_KERNEL_FLAGS ||
				list->kernels[at].age > IMAGES_AGE_MAX)
				return false;
	}
	return next == list->head->kernel_count;
}

static uint64_t size_of(const struct images_head *head)
{
	return sizeof(*head) + (uint64_t)head->file_count * sizeof(struct image_file) +
	       (uint64_t)head->image_count * sizeof(struct image) +
	       (uint64_t)head->kernel_count * sizeof(struct image_kernel) + head->text_size;
}

static bool read_list(const struct extension_record *record, struct images *ret_images)
{
	const struct images_head *head = record->payload;
	struct images list = {.head = head};

	if (record->length < sizeof(*head) || (uintptr_t)head % _Alignof(struct images_head) ||
		head->version != IMAGES_VERSION || head->file_count > IMAGES_FILES_MAX ||
		head->image_count > IMAGES_MAX || head->kernel_count > IMAGES_KERNELS_MAX ||
		head->text_size > IMAGES_TEXT_MAX || record->length != size_of(head))
		return false;
	list.files = (const struct image_file *)(head + 1);
	list.images = (const struct image *)(list.files + head->file_count);
	list.kernels = (const struct image_kernel *)(list.images + head->image_count);
	list.text = (const char *)(list.kernels + head->kernel_count);
	if (!are_texts_sound(list.text, head->text_size))
		return false;
	for (uint32_t i = 0; i < head->file_count; i++)
		if (!is_file_sound(&list, &list.files[i]))
			return false;
	for (uint32_t i = 0; i < head->image_count; i++)
		if (!is_image_sound(&list, &list.images[i]))
			return false;
	if (!are_kernels_sound(&list))
		return false;
	*ret_images = list;
	return true;
}

bool images_next(
	const struct profile_extension *extension, uint32_t *cursor, struct images *ret_images)
{
	struct extension_record record;

	while (extension_next(extension, cursor, &record))
		if (record.type == IMAGES_RECORD && read_list(&record, ret_images))
			return true;
	return false;
}

int images_find(const struct profile_extension *extension, uint64_t key, struct images *ret_images)
{
	struct images list;
	uint32_t cursor = 0;

	while (images_next(extension, &cursor, &list)) {
		if (list.head->key != key)
			continue;
		*ret_images = list;
		return 0;
	}
	return PROFILE_NONE;
}

bool image_is_replayable(const struct image *image)
{
	return !(image->flags & ~IMAGE_HAS_NO_VALUES);
}

bool image_has_same_options(const struct image *a, const struct image *b)
{
	const uint32_t refusals = IMAGE_HAS_JIT_OPTIONS | IMAGE_HAS_MORE_OPTIONS,
		       flags = refusals | IMAGE_HAS_NO_VALUES;

	return (a->flags & flags) == (b->flags & flags) &&
	       (!(a->flags & refusals) || a->refused == b->refused) &&
	       a->option_count == b->option_count && a->jit_count == b->jit_count &&
	       !memcmp(a->options, b->options, a->option_count * sizeof(a->options[0])) &&
	       !memcmp(a->jit_options, b->jit_options, a->jit_count * sizeof(a->jit_options[0]));
}

/* CUDA Driver API, "CUjit_option". All others are buffers or their sizes and counts, results (also
 * CU_JIT_THREADS_PER_BLOCK is one), internal, or of a later CUDA. */
bool image_jit_option_is_plain(uint32_t option)
{
	switch (option) {
	case 0:  /* CU_JIT_MAX_REGISTERS */
	case 7:  /* CU_JIT_OPTIMIZATION_LEVEL */
	case 8:  /* CU_JIT_TARGET_FROM_CUCONTEXT, whose value is not read */
	case 9:  /* CU_JIT_TARGET */
	case 10: /* CU_JIT_FALLBACK_STRATEGY */
	case 11: /* CU_JIT_GENERATE_DEBUG_INFO */
	case 12: /* CU_JIT_LOG_VERBOSE */
	case 13: /* CU_JIT_GENERATE_LINE_INFO */
	case 14: /* CU_JIT_CACHE_MODE */
	case 20: /* CU_JIT_LTO */
	case 21: /* CU_JIT_FTZ */
	case 22: /* CU_JIT_PREC_DIV */
	case 23: /* CU_JIT_PREC_SQRT */
	case 24: /* CU_JIT_FMA */
	case 29: /* CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES */
	case 30: /* CU_JIT_POSITION_INDEPENDENT_CODE */
	case 31: /* CU_JIT_MIN_CTA_PER_SM */
	case 32: /* CU_JIT_MAX_THREADS_PER_BLOCK */
	case 33: /* CU_JIT_OVERRIDE_DIRECTIVE_VALUES */
		return true;
	default:
		return false;
	}
}

const char *image_reason(const struct image *image, char ret_text[IMAGE_REASON_SIZE])
{
	bool is_jit = image->flags & IMAGE_HAS_JIT_OPTIONS;

	if (image_is_replayable(image))
		return "";
	if (image->flags & IMAGE_IS_JIT)
		return "compiled: not loaded ahead";
	if (image->flags & IMAGE_IS_LATE)
		return "a limit is set: not loaded ahead";
	if (image->refused == IMAGES_NO_OPTION)
		return is_jit ? "jit options: not loaded ahead"
			      : "library options: not loaded ahead";
	snprintf(ret_text, IMAGE_REASON_SIZE, "%s option %u: not loaded ahead",
		is_jit ? "jit" : "library", image->refused);
	return ret_text;
}

void images_draft_begin(struct images_draft *draft)
{
	draft->file_count = draft->image_count = draft->kernel_count = 0;
	draft->text[0] = '\0';
	draft->text_size = 1;
}

uint32_t images_draft_text(struct images_draft *draft, const char *text)
{
	size_t size = strlen(text) + 1;
	uint32_t at = draft->text_size;

	if (size == 1 || size > IMAGES_TEXT_MAX - at || !is_clean(text, size - 1))
		return 0;
	memcpy(draft->text + at, text, size);
	draft->text_size += (uint32_t)size;
	return at;
}

/* Counts each image's kernels and gives out the ranges. */
static bool give_ranges(struct images_draft *draft)
{
	uint32_t next = 0;

	for (uint32_t i = 0; i < draft->image_count; i++)
		draft->images[i].kernel_count = 0;
	for (uint32_t i = 0; i < draft->kernel_count; i++) {
		if (draft->kernels[i].image >= draft->image_count)
			return false;
		draft->images[draft->kernels[i].image].kernel_count++;
	}
	for (uint32_t i = 0; i < draft->image_count; i++) {
		draft->images[i].kernel_first = next;
		next += draft->images[i].kernel_count;
	}
	return true;
}

/* Copies the kernels to `to`, each to its place; leaves the ranges as they were. */
static void put_kernels(struct images_draft *draft, struct image_kernel *to)
{
	for (uint32_t i = 0; i < draft->image_count; i++)
		draft->images[i].kernel_count = 0;
	for (uint32_t i = 0; i < draft->kernel_count; i++) {
		struct image *image = &draft->images[draft->kernels[i].image];

		to[image->kernel_first + image->kernel_count++] = draft->kernels[i];
	}
}

static int add_list(struct profile_extension *extension, uint64_t key, struct images_draft *draft)
{
	struct images_head head = {
		.version = IMAGES_VERSION,
		.file_count = draft->file_count,
		.image_count = draft->image_count,
		.kernel_count = draft->kernel_count,
		.text_size = draft->text_size,
		.key = key,
	};
	struct extension_record record = {.length = (uint32_t)size_of(&head)};
	struct images list;
	uint32_t before = extension->size;
	uint8_t *payload, *at;
	int rc = extension_reserve(extension, IMAGES_RECORD, record.length, (void **)&payload);

	if (rc)
		return rc;
	record.payload = payload;
	memcpy(payload, &head, sizeof(head));
	at = payload + sizeof(head);
	memcpy(at, draft->files, draft->file_count * sizeof(struct image_file));
	at += draft->file_count * sizeof(struct image_file);
	put_kernels(draft, (struct image_kernel *)(at + draft->image_count * sizeof(struct image)));
	memcpy(at, draft->images, draft->image_count * sizeof(struct image));
	at += draft->image_count * sizeof(struct image) +
	      draft->kernel_count * sizeof(struct image_kernel);
	memcpy(at, draft->text, draft->text_size);
	if (!read_list(&record, &list)) {
		extension->size = before;
		return -EINVAL;
	}
	return 0;
}

/* Removes the lists that have no section in `profile` (NULL: all but none), and the one of `key`.
 */
static void remove_lists(
	struct profile_extension *extension, const struct profile *profile, uint64_t key)
{
	struct extension_record record;
	struct images list;
	uint32_t cursor = 0;

	while (extension_next(extension, &cursor, &record)) {
		bool is_kept = false;

		if (record.type != IMAGES_RECORD)
			continue;
		if (profile && read_list(&record, &list) && list.head->key != key)
			for (uint32_t i = 0; i < profile->section_count && !is_kept; i++)
				is_kept =
					list.head->key == images_key(profile->sections[i].build_id,
								  profile->sections[i].model);
		if (!is_kept) {
			extension_remove_at(extension, record.at);
			cursor = record.at;
		}
	}
}

int images_write(struct profile_extension *extension, const struct profile *profile, uint64_t key,
	struct images_draft *draft)
{
	int rc;

	if (draft->file_count > IMAGES_FILES_MAX || draft->image_count > IMAGES_MAX ||
		draft->kernel_count > IMAGES_KERNELS_MAX || draft->text_size > IMAGES_TEXT_MAX ||
		!give_ranges(draft))
		return -EINVAL;
	remove_lists(extension, profile, key);
	rc = add_list(extension, key, draft);
	if (rc != -ENOSPC)
		return rc;
	/* This run's matters more than what other GPUs and drivers would need. */
	remove_lists(extension, NULL, key);
	return add_list(extension, key, draft);
}
