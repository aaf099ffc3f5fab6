/* Reading ld.so.cache. Runs in the user's program before its first driver call; must leave no
 * descriptor and no mapping, and believe no offset of the file. */
#include "driver/ld_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CACHE_FILE "/etc/ld.so.cache"

/* The format since glibc 2.2; until 2.31 it follows an older table in the same file. */
#define OLD_MAGIC "ld.so-1.7.0"
#define NEW_MAGIC "glibc-ld.so.cache1.1"
#define OLD_ENTRY_SIZE 12u
#define OLD_HEADER_SIZE 16u /* the magic, padded, and the number of entries */

/* FLAG_ELF_LIBC6 | FLAG_X8664_LIB64 */
#define FLAGS_X86_64 0x0303

struct cache_entry {
	int32_t flags;
	uint32_t key, value; /* offsets of name and path, from the header's start */
	uint32_t os_version;
	uint64_t hwcap;
};

struct cache_header {
	char magic[sizeof(NEW_MAGIC) - 1];
	uint32_t count, text_size;
	uint8_t flags, padding[3];
	uint32_t extension, unused[3];
};

/* The text at `offset`, or NULL where none that ends within the file starts there. */
static const char *text_at(const char *cache, size_t size, uint32_t offset)
{
	if (offset >= size || !memchr(cache + offset, '\0', size - offset))
		return NULL;
	return cache + offset;
}

int ld_cache_find_in(const char *cache, unsigned long size, const char *name,
	int (*accept)(const char *path, void *data), void *data)
{
	struct cache_header header;

	if (size > OLD_HEADER_SIZE && !memcmp(cache, OLD_MAGIC, sizeof(OLD_MAGIC) - 1)) {
		uint32_t count;
		uint64_t skip;

		memcpy(&count, cache + sizeof(OLD_MAGIC), sizeof(count));
		skip = (OLD_HEADER_SIZE + (uint64_t)count * OLD_ENTRY_SIZE + 7) & ~(uint64_t)7;
		if (skip >= size)
			return -EBADMSG;
		cache += skip;
		size -= skip;
	}
	if (size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, cache, sizeof(header));
	if (memcmp(header.magic, NEW_MAGIC, sizeof(header.magic)) ||
		header.count > (size - sizeof(header)) / sizeof(struct cache_entry))
		return -EBADMSG;
	for (uint32_t i = 0; i < header.count; i++) {
		struct cache_entry entry;
		const char *key, *path;

		memcpy(&entry, cache + sizeof(header) + i * sizeof(entry), sizeof(entry));
		if (entry.flags != FLAGS_X86_64)
			continue;
		key = text_at(cache, size, entry.key);
		if (!key || strcmp(key, name))
			continue;
		path = text_at(cache, size, entry.value);
		if (path && !accept(path, data))
			return 0;
	}
	return -ENOENT;
}

int ld_cache_find(const char *name, int (*accept)(const char *path, void *data), void *data)
{
	int fd = open(CACHE_FILE, O_RDONLY | O_CLOEXEC);
	off_t size;
	void *memory;
	int rc;

	if (fd < 0)
		return -errno;
	size = lseek(fd, 0, SEEK_END);
	memory = size > 0 ? mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (memory == MAP_FAILED)
		return -EBADMSG;
	rc = ld_cache_find_in(memory, (unsigned long)size, name, accept, data);
	munmap(memory, (size_t)size);
	return rc;
}
