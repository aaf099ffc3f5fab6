/* What is to be loaded ahead: the profile's list, and where its images' content lies. Runs on the
 * speculative thread (the small questions also on the program's); no loader, no allocation but
 * mappings. */
#include "preload/prefetch_table.h"

#include "base/log.h"
#include "driver/quiet_files.h"
#include "preload/situation.h"
#include "preload/speculation.h"
#include "preload/start.h"
#include "profile/image_store.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* What more runs than that have not asked for is not loaded ahead: each image takes memory, and two
 * ways to run a program may alternate. */
#define AGE_MAX 1

/* Bytes of images from the heap that are held. */
static uint64_t held_bytes;

const struct image *prefetch_listed(const struct prefetch_image *image)
{
	return &prefetch.list.images[image->index];
}

bool prefetch_is_library(const struct prefetch_image *image)
{
	return prefetch_listed(image)->entry == IMAGE_LIBRARY_DATA;
}

bool prefetch_is_preserved(const struct prefetch_image *image)
{
	const struct image *listed = prefetch_listed(image);

	for (uint32_t i = 0; prefetch_is_library(image) && i < listed->option_count; i++)
		if (listed->options[i].option == CU_LIBRARY_BINARY_IS_PRESERVED)
			return true;
	return false;
}

static void *map(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static bool read_list(const struct profile_section *section, struct images *ret_list)
{
	struct profile_extension extension = {.room = PROFILE_EXTENSION_MAX};
	struct profile *profile = map(sizeof(*profile));
	bool is_found;

	extension.data = map(extension.room);
	is_found =
		profile && extension.data &&
		!profile_find(situation_profiles(), PROFILE_SYSTEM_DIR,
			situation_identity()->digest, profile, &extension) &&
		!images_find(&extension, images_key(section->build_id, section->model), ret_list);
	if (profile)
		munmap(profile, sizeof(*profile));
	if (extension.data && !is_found)
		munmap(extension.data, extension.room);
	return is_found;
}

/* The driver reads it as long as the library lives, and the store's file may go from a home folder
 * on the network meanwhile: then memory that is mapped from it can be read no more. */
static bool copy_source(struct image_source *source)
{
	uint64_t size = source->size;
	void *copy = map(size);

	if (!copy)
		return false;
	memcpy(copy, source->data, size);
	image_source_close(source);
	*source = (struct image_source){
		.data = copy, .size = size, .mapping = copy, .mapping_size = size};
	return true;
}

static bool open_source(struct prefetch_image *image)
{
	static struct image_bases bases;
	static char store[PROFILE_PATH_MAX];
	const struct image *listed = prefetch_listed(image);
	bool is_heap = listed->file == IMAGES_NO_FILE;
	int error;

	if (is_heap && held_bytes + listed->size > start_settings()->prefetch_bytes)
		return false;
	/* No fork child is to have the descriptor. */
	quiet_files_before_fork();
	if (!store[0]) {
		image_bases_find(situation_started(), &bases);
		if (image_store_folder(situation_profiles(), store))
			store[0] = '\0';
	}
	error = image_source_open(
		&prefetch.list, image->index, &bases, store[0] ? store : NULL, &image->source);
	quiet_files_after_fork(false);
	if (!error && is_heap && prefetch_is_preserved(image) && !copy_source(&image->source)) {
		image_source_close(&image->source);
		error = -ENOMEM;
	}
	if (error) {
		log_debug("prefetch: image %u: %s", image->index, strerror(-error));
		return false;
	}
	held_bytes += is_heap ? listed->size : 0;
	image->is_open = true;
	return true;
}

/* Nobody may be just comparing it with what the program passes. */
void prefetch_close(struct prefetch_image *image, uint32_t own_readers)
{
	if (image->is_open && speculation_read(&prefetch.readers) == own_readers) {
		image->is_open = false;
		image_source_close(&image->source);
	}
}

/* The device that all images were loaded for, or -1. A program that uses one device may use another
 * one this time, as its launcher says; of one that uses several each image has its own. */
static int only_device(void)
{
	int device = -1;

	for (uint32_t i = 0; i < prefetch.list.head->image_count; i++) {
		int other = prefetch.list.images[i].device;

		if (other >= 0 && device >= 0 && other != device)
			return -1;
		if (other >= 0)
			device = other;
	}
	return device;
}

static bool is_wanted(const struct image *listed, int only)
{
	return image_is_replayable(listed) && listed->age <= AGE_MAX &&
	       (listed->entry == IMAGE_LIBRARY_DATA || listed->entry == IMAGE_MODULE_DATA ||
		       listed->entry == IMAGE_MODULE_DATA_EX ||
		       listed->entry == IMAGE_MODULE_FATBIN) &&
	       (listed->device < 0 || listed->device == only ||
		       listed->device == speculation.wanted.device);
}

/* Every source is opened before the program can ask for any: some are known by their content alone.
 */
bool prefetch_make_table(uint32_t epoch)
{
	uint32_t count = 0;
	int only;

	if (!read_list(situation_section(), &prefetch.list))
		return false;
	prefetch.images = map(prefetch.list.head->image_count * sizeof(*prefetch.images) + 1);
	if (!prefetch.images)
		return false;
	only = only_device();
	for (uint32_t i = 0; i < prefetch.list.head->image_count; i++) {
		struct prefetch_image *image = &prefetch.images[count];

		if (!is_wanted(&prefetch.list.images[i], only))
			continue;
		image->index = i;
		image->epoch = epoch;
		count += open_source(image);
	}
	__atomic_store_n(&prefetch.count, count, __ATOMIC_RELEASE);
	return count;
}
