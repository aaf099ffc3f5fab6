/* Identifying files. Runs on threads of our own in the user's program; believes nothing that a file
 * says about its sizes. */
#include "preload/image_file.h"

#include "base/status.h"
#include "driver/abi.h"
#include "driver/build_id.h"
#include "driver/image.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* More program headers than any library has. */
#define HEADERS_MAX 64u

static int digest_headers(int fd, uint8_t ret_digest[DIGEST_SIZE])
{
	Elf64_Phdr segments[HEADERS_MAX];
	struct digest_state state;
	Elf64_Ehdr header;
	ssize_t size;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
		memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phnum > HEADERS_MAX)
		return -ENOEXEC;
	size = header.e_phnum * (ssize_t)sizeof(segments[0]);
	if (pread(fd, segments, (size_t)size, (off_t)header.e_phoff) != size)
		return -ENOEXEC;
	digest_init(&state);
	digest_update(&state, &header, sizeof(header));
	digest_update(&state, segments, (size_t)size);
	digest_final(&state, ret_digest);
	return 0;
}

int image_file_identify(int fd, struct image_file *ret_file)
{
	struct image_file file = {.kind = IMAGE_FILE_PLAIN};
	struct build_id id;
	struct stat status;

	if (status_of_fd(fd, &status))
		return -errno;
	file.size = (uint64_t)status.st_size;
	if (!build_id_of_file(fd, &id)) {
		file.kind = IMAGE_FILE_BUILD_ID;
		memcpy(file.identity, id.bytes, sizeof(file.identity));
	} else if (!digest_headers(fd, file.identity)) {
		file.kind = IMAGE_FILE_HEADERS;
	}
	*ret_file = file;
	return 0;
}

void *image_file_copy(int fd, uint64_t offset, uint64_t size)
{
	uint8_t *copy =
		size ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		     : MAP_FAILED;
	uint64_t done = 0;

	if (copy == MAP_FAILED)
		return NULL;
	while (done < size) {
		ssize_t got = pread(fd, copy + done, size - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			munmap(copy, size);
			return NULL;
		}
		done += (uint64_t)got;
	}
	return copy;
}

void image_file_look(const void *content, unsigned int sm, struct image *image)
{
	struct fatbin_header header;
	struct image_info info;

	image->form = IMAGE_TEXT;
	if (image->size >= sizeof(header)) {
		memcpy(&header, content, sizeof(header));
		if (!memcmp(content, ELFMAG, SELFMAG))
			image->form = IMAGE_ELF;
		else if (header.magic == FATBIN_MAGIC)
			image->form = IMAGE_FATBIN;
	}
	if (image->form == IMAGE_FATBIN && header.size <= image->size &&
		header.header_size + header.size <= image->size) {
		image_inspect(content, sm, &info);
		if (info.is_compiled)
			image->flags |= IMAGE_IS_JIT;
	} else if (image->form == IMAGE_TEXT &&
		   memmem(content, image->size, PTX_SIGN, strlen(PTX_SIGN))) {
		image->flags |= IMAGE_IS_JIT;
	}
}

bool image_file_relative(const char *folder, const char *path, char *ret_path, size_t size)
{
	size_t common = 0, at = 0, used = 0;

	if (folder[0] != '/' || path[0] != '/')
		return false;
	/* What both begin with, to a slash or to the folder's end. */
	for (; folder[at] && folder[at] == path[at]; at++)
		if (folder[at] == '/')
			common = at;
	if (!folder[at] && path[at] == '/')
		common = at;
	if (!common)
		return false;
	for (const char *rest = folder + common; *rest; rest++) {
		if (*rest != '/' || !rest[1] || rest[1] == '/')
			continue;
		if (used + strlen("../") >= size)
			return false;
		memcpy(ret_path + used, "../", strlen("../"));
		used += strlen("../");
	}
	path += common + 1;
	if (used + strlen(path) >= size)
		return false;
	memcpy(ret_path + used, path, strlen(path) + 1);
	return true;
}
