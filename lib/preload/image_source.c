/* Finding the content of recorded images. Runs on the speculative thread; no lock, no loader, no
 * allocation but mappings; leaves no descriptor. Files lie on disks: nothing that they or the
 * profile say is believed before it is checked. */
#include "preload/image_source.h"

#include "base/status.h"
#include "driver/build_id.h"
#include "preload/image_file.h"
#include "profile/image_store.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of a path, without the slash; "" where it has none. */
static void cut_to_folder(char path[PATH_MAX])
{
	char *slash = strrchr(path, '/');

	*(slash ? slash : path) = '\0';
}

static bool join(const char *folder, const char *rest, char ret_path[PATH_MAX])
{
	size_t length = strlen(folder), size = strlen(rest) + 1;

	if (length + 1 + size > PATH_MAX)
		return false;
	memcpy(ret_path, folder, length);
	ret_path[length] = '/';
	memcpy(ret_path + length + 1, rest, size);
	return true;
}

void image_bases_find(const char *started, struct image_bases *ret_bases)
{
	char folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);

	folder[length > 0 ? length : 0] = '\0';
	memcpy(ret_bases->executable, folder, strlen(folder) + 1);
	cut_to_folder(ret_bases->executable);
	/* A name without a slash was searched on PATH, and the kernel says what was found. */
	if (!started || !strchr(started, '/'))
		started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
	ret_bases->started[0] = '\0';
	if (!started || strlen(started) >= PATH_MAX)
		return;
	if (started[0] == '/')
		memcpy(ret_bases->started, started, strlen(started) + 1);
	else if (!getcwd(folder, sizeof(folder)) || !join(folder, started, ret_bases->started))
		return;
	cut_to_folder(ret_bases->started);
}

static bool is_file(int fd, const struct image_file *wanted, uint64_t end)
{
	struct stat status;
	struct image_file found;

	return !status_of_fd(fd, &status) && S_ISREG(status.st_mode) &&
	       (uint64_t)status.st_size >= end && !image_file_identify(fd, &found) &&
	       found.kind == wanted->kind &&
	       !memcmp(found.identity, wanted->identity, sizeof(found.identity)) &&
	       (wanted->kind == IMAGE_FILE_BUILD_ID || found.size == wanted->size);
}

/* A descriptor of the file, wherever it now is, or -ENOENT. */
static int open_file(
	const struct images *list, const struct image *image, const struct image_bases *bases)
{
	const struct image_file *file = &list->files[image->file];
	const struct {
		const char *folder;
		uint32_t text;
	} places[] = {{"", file->path}, {bases->started, file->from_started},
		{bases->executable, file->from_executable}};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *text = list->text + places[i].text;
		char path[PATH_MAX];
		int fd;

		if (!*text || (i && !*places[i].folder))
			continue;
		if (i && !join(places[i].folder, text, path))
			continue;
		fd = open(i ? path : text, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0)
			continue;
		if (is_file(fd, file, image->offset + image->size))
			return fd;
		close(fd);
	}
	return -ENOENT;
}

/* The mapping begins on a page. */
static int map_range(int fd, const struct image *image, struct image_source *ret_source)
{
	uint64_t before = image->offset % (uint64_t)sysconf(_SC_PAGESIZE);
	struct image_source source = {.size = image->size, .mapping_size = image->size + before};

	source.mapping = mmap(NULL, source.mapping_size, PROT_READ, MAP_PRIVATE, fd,
		(off_t)(image->offset - before));
	if (source.mapping == MAP_FAILED)
		return -errno;
	source.data = (const char *)source.mapping + before;
	*ret_source = source;
	return 0;
}

/* Libraries of which a part is enough to know them are mapped, as the program will map them. What
 * is read in full is copied: it may be any file, which somebody may be rewriting. */
static int get_range(int fd, const struct image *image, struct image_source *ret_source)
{
	void *copy;

	if (image->digest_size < image->size)
		return map_range(fd, image, ret_source);
	copy = image_file_copy(fd, image->offset, image->size);
	if (!copy)
		return -EIO;
	*ret_source = (struct image_source){
		.data = copy, .size = image->size, .mapping = copy, .mapping_size = image->size};
	return 0;
}

static int open_in_file(const struct images *list, const struct image *image,
	const struct image_bases *bases, struct image_source *ret_source)
{
	uint8_t found[DIGEST_SIZE];
	int fd = open_file(list, image, bases), rc;

	if (fd < 0)
		return fd;
	rc = get_range(fd, image, ret_source);
	close(fd);
	if (rc)
		return rc;
	digest_of(ret_source->data, image->digest_size, found);
	if (!memcmp(found, image->digest, sizeof(found)))
		return 0;
	image_source_close(ret_source);
	return -ESTALE;
}

static int open_on_heap(
	const struct image *image, const char *store, struct image_source *ret_source)
{
	const void *content;
	int rc = store ? image_store_map(store, image->digest, image->size, &content) : -ENOENT;

	if (rc)
		rc = image_store_map(IMAGE_STORE_SYSTEM_DIR, image->digest, image->size, &content);
	if (!rc)
		*ret_source = (struct image_source){
			.data = content,
			.size = image->size,
			.mapping = (void *)(uintptr_t)content,
			.mapping_size = image->size,
		};
	return rc;
}

int image_source_open(const struct images *list, uint32_t index, const struct image_bases *bases,
	const char *store, struct image_source *ret_source)
{
	const struct image *image = &list->images[index];

	return image->file == IMAGES_NO_FILE ? open_on_heap(image, store, ret_source)
					     : open_in_file(list, image, bases, ret_source);
}

void image_source_close(struct image_source *source)
{
	if (source->mapping)
		munmap(source->mapping, source->mapping_size);
	*source = (struct image_source){0};
}
