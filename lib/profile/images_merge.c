/* Learning what was loaded. Runs in the user's process on a thread of our own or at its end, off
 * the path of its calls. No lock, no allocation but mapped scratch memory. */
#include "profile/images_merge.h"

#include "profile/extension.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define TRIES 8 /* then the last writer wins */

static bool is_same_file(const struct image_file *a, const struct image_file *b)
{
	return a->kind == b->kind && !memcmp(a->identity, b->identity, sizeof(a->identity)) &&
	       (a->kind == IMAGE_FILE_BUILD_ID || a->size == b->size);
}

static bool is_same_image(const struct images *old, const struct image *a,
	const struct images_draft *seen, const struct image *b)
{
	if (a->entry != b->entry || a->form != b->form || a->size != b->size ||
		a->digest_size != b->digest_size ||
		memcmp(a->digest, b->digest, sizeof(a->digest)) || !image_has_same_options(a, b) ||
		(a->file == IMAGES_NO_FILE) != (b->file == IMAGES_NO_FILE))
		return false;
	return a->file == IMAGES_NO_FILE ||
	       (a->offset == b->offset && a->wrapper == b->wrapper &&
		       is_same_file(&old->files[a->file], &seen->files[b->file]));
}

/* The index of the old image among this run's, or IMAGES_MAX. */
static uint32_t find_image(
	const struct images *old, const struct image *image, const struct images_draft *seen)
{
	for (uint32_t i = 0; i < seen->image_count; i++)
		if (is_same_image(old, image, seen, &seen->images[i]))
			return i;
	return IMAGES_MAX;
}

/* A text of the old list in the new one; 0 where there is no room. */
static uint32_t keep_text(const struct images *old, uint32_t at, struct images_draft *merged)
{
	return images_draft_text(merged, old->text + at);
}

/* The old list's file in the new one; IMAGES_NO_FILE where there is no room. */
static uint32_t keep_file(const struct images *old, uint32_t index, struct images_draft *merged)
{
	const struct image_file *file = &old->files[index];
	struct image_file *kept = &merged->files[merged->file_count];

	for (uint32_t i = 0; i < merged->file_count; i++)
		if (is_same_file(file, &merged->files[i]))
			return i;
	if (merged->file_count == IMAGES_FILES_MAX)
		return IMAGES_NO_FILE;
	*kept = *file;
	kept->path = keep_text(old, file->path, merged);
	kept->from_executable = keep_text(old, file->from_executable, merged);
	kept->from_started = keep_text(old, file->from_started, merged);
	return merged->file_count++;
}

static bool has_kernel(const struct images_draft *seen, uint32_t image, const char *name)
{
	for (uint32_t i = 0; i < seen->kernel_count; i++)
		if (seen->kernels[i].image == image &&
			!strcmp(seen->text + seen->kernels[i].name, name))
			return true;
	return false;
}

/* The old image's kernels go to image `to`, except those that this run asked for itself. */
static void keep_kernels(const struct images *old, const struct image *image,
	const struct images_draft *seen, uint32_t to, uint32_t older, struct images_draft *merged)
{
	for (uint32_t i = 0; i < image->kernel_count; i++) {
		struct image_kernel kernel = old->kernels[image->kernel_first + i];

		if (merged->kernel_count == IMAGES_KERNELS_MAX ||
			kernel.age + older > IMAGES_AGE_MAX ||
			(to < seen->image_count && has_kernel(seen, to, old->text + kernel.name)))
			continue;
		kernel.name = keep_text(old, kernel.name, merged);
		kernel.image = to;
		kernel.age += older;
		if (kernel.name)
			merged->kernels[merged->kernel_count++] = kernel;
	}
}

/* Times vary: only another order of magnitude is news. */
static uint32_t smooth(uint32_t old_us, uint32_t now_us)
{
	return !now_us || (now_us <= 2 * (uint64_t)old_us && old_us <= 2 * (uint64_t)now_us)
		       ? old_us
		       : now_us;
}

static void keep_image(const struct images *old, const struct image *image,
	const struct images_draft *seen, uint32_t older, struct images_draft *merged)
{
	uint32_t at = find_image(old, image, seen);
	struct image kept = *image;

	if (at < seen->image_count) {
		merged->images[at].load_us = smooth(image->load_us, merged->images[at].load_us);
		keep_kernels(old, image, seen, at, older, merged);
		return;
	}
	if (image->age + older > IMAGES_AGE_MAX || merged->image_count == IMAGES_MAX)
		return;
	kept.age += older;
	if (image->file != IMAGES_NO_FILE) {
		kept.file = keep_file(old, image->file, merged);
		if (kept.file == IMAGES_NO_FILE)
			return;
	}
	merged->images[merged->image_count] = kept;
	keep_kernels(old, image, seen, merged->image_count++, 0, merged);
}

void images_merge(const struct images *old, const struct images_draft *seen, bool is_new_run,
	struct images_draft *ret_merged)
{
	images_draft_begin(ret_merged);
	ret_merged->file_count = seen->file_count;
	ret_merged->image_count = seen->image_count;
	ret_merged->kernel_count = seen->kernel_count;
	ret_merged->text_size = seen->text_size;
	memcpy(ret_merged->files, seen->files, seen->file_count * sizeof(seen->files[0]));
	memcpy(ret_merged->images, seen->images, seen->image_count * sizeof(seen->images[0]));
	memcpy(ret_merged->kernels, seen->kernels, seen->kernel_count * sizeof(seen->kernels[0]));
	memcpy(ret_merged->text, seen->text, seen->text_size);
	for (uint32_t i = 0; old && i < old->head->image_count; i++)
		keep_image(old, &old->images[i], seen, is_new_run, ret_merged);
}

/* Scratch memory, all zero until it is touched. */
struct scratch {
	struct images_draft merged;
	_Alignas(8) uint8_t before[PROFILE_EXTENSION_MAX], after[PROFILE_EXTENSION_MAX];
};

static int try_once(const char *folder, const char *system_folder, const struct identity *identity,
	uint64_t key, const struct images_draft *seen, bool is_new_run, bool is_last,
	struct scratch *scratch)
{
	struct profile_extension before = {.data = scratch->before, .room = PROFILE_EXTENSION_MAX},
				 after = {.data = scratch->after, .room = PROFILE_EXTENSION_MAX};
	uint8_t on_disk[DIGEST_SIZE];
	struct profile profile;
	struct images old;
	bool has_old;
	int rc = profile_seen(folder, identity->digest, on_disk);

	if (!rc)
		rc = profile_find(folder, system_folder, identity->digest, &profile, &before);
	if (rc)
		return rc;
	has_old = !images_find(&before, key, &old);
	if (!has_old && !seen->image_count)
		return 0;
	images_merge(has_old ? &old : NULL, seen, is_new_run, &scratch->merged);
	memcpy(after.data, before.data, before.size);
	after.size = before.size;
	rc = images_write(&after, &profile, key, &scratch->merged);
	if (rc)
		return rc;
	if (after.size == before.size && !memcmp(after.data, before.data, after.size))
		return 0;
	return profile_replace(folder, &profile, &after, is_last ? NULL : on_disk);
}

int images_learn(const char *folder, const char *system_folder, const struct identity *identity,
	uint64_t key, const struct images_draft *seen, bool is_new_run)
{
	struct scratch *scratch = mmap(NULL, sizeof(*scratch), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int rc = PROFILE_CHANGED;

	if (scratch == MAP_FAILED)
		return -errno;
	for (int i = 1; i <= TRIES && rc == PROFILE_CHANGED; i++)
		rc = try_once(folder, system_folder, identity, key, seen, is_new_run, i == TRIES,
			scratch);
	munmap(scratch, sizeof(*scratch));
	return rc;
}
