/* Profiles with their images in one file. In tools only; believes nothing that a file says before
 * it is checked. */
#include "report/bundle.h"

#include "profile/image_store.h"
#include "profile/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define IMAGES_PER_BUNDLE_MAX ((uint64_t)PROFILE_SECTIONS * IMAGES_MAX)

static bool put(FILE *to, const void *data, size_t size)
{
	return !size || fwrite(data, 1, size, to) == size;
}

/* Visits the content of each image on the heap that the store has: once for each place where it is
 * listed. Writes it where `to` is given. Returns how many, or a negative errno. */
static int64_t each_image(const struct profile_extension *extension, const char *store, FILE *to)
{
	struct images list;
	uint32_t cursor = 0;
	int64_t count = 0;

	while (images_next(extension, &cursor, &list)) {
		for (uint32_t i = 0; i < list.head->image_count; i++) {
			const struct image *image = &list.images[i];
			struct bundle_image head = {.size = image->size};
			const void *content;
			bool is_put;

			if (image->file != IMAGES_NO_FILE || !image_is_replayable(image) ||
				image_store_map(store, image->digest, image->size, &content))
				continue;
			count++;
			memcpy(head.digest, image->digest, sizeof(head.digest));
			is_put = !to ||
				 (put(to, &head, sizeof(head)) && put(to, content, image->size));
			munmap((void *)(uintptr_t)content, image->size);
			if (!is_put)
				return -EIO;
		}
	}
	return count;
}

int bundle_write(FILE *to, const struct profile *profile, const struct profile_extension *extension,
	const char *store)
{
	struct bundle_head head = {.profile_size = sizeof(*profile) + extension->size};
	int64_t count = each_image(extension, store, NULL);

	memcpy(head.magic, BUNDLE_MAGIC, sizeof(head.magic)); /* without its NUL */
	head.image_count = (uint64_t)count;
	if (!put(to, &head, sizeof(head)) || !put(to, profile, sizeof(*profile)) ||
		!put(to, extension->data, extension->size))
		return -EIO;
	return each_image(extension, store, to) == count ? 0 : -EIO;
}

static bool get(int fd, void *data, size_t size)
{
	uint8_t *next = data;

	while (size) {
		ssize_t got = read(fd, next, size);

		if (got <= 0)
			return false;
		next += got;
		size -= (size_t)got;
	}
	return true;
}

static int get_image(int fd, const char *store)
{
	struct bundle_image head;
	uint8_t digest[DIGEST_SIZE];
	void *content;
	int rc = -ESTALE;

	if (!get(fd, &head, sizeof(head)) || !head.size || head.size > IMAGE_STORE_MAX)
		return -ESTALE;
	content = mmap(NULL, head.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (content == MAP_FAILED)
		return -errno;
	if (get(fd, content, head.size)) {
		digest_of(content, head.size, digest);
		if (!memcmp(digest, head.digest, sizeof(digest)))
			rc = image_store_put(store, digest, content, head.size);
	}
	munmap(content, head.size);
	return rc;
}

static int read_bundle(
	int fd, const char *store, struct profile *ret_profile, struct profile_extension *extension)
{
	struct bundle_head head;
	struct stat file;
	int rc;

	if (!get(fd, &head, sizeof(head)) || memcmp(head.magic, BUNDLE_MAGIC, sizeof(head.magic)))
		return BUNDLE_NONE;
	if (fstat(fd, &file))
		return -errno;
	if (!profile_is_trusted(&file) || head.image_count > IMAGES_PER_BUNDLE_MAX)
		return -ESTALE;
	rc = profile_read_part(fd, head.profile_size, ret_profile, extension);
	if (rc)
		return rc == PROFILE_NONE ? -ESTALE : rc;
	for (uint64_t i = 0; !rc && i < head.image_count; i++)
		rc = get_image(fd, store);
	return rc;
}

int bundle_read(const char *path, const char *store, struct profile *ret_profile,
	struct profile_extension *extension)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0)
		return -errno;
	rc = read_bundle(fd, store, ret_profile, extension);
	close(fd);
	return rc;
}
