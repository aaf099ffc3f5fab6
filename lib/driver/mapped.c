/* From addresses to files. Runs in the user's program, also inside its calls of the driver; must
 * not allocate or take the loader's main lock (no dl* call but dl_iterate_phdr). */
#include "driver/mapped.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct search {
	uintptr_t address, beside;
	struct mapped *ret_mapped;
	bool is_found;
};

/* The segment that holds the address, NULL where none does. */
static const ElfW(Phdr) * segment_of(const struct dl_phdr_info *info, uintptr_t address)
{
	/* Most objects lie elsewhere. */
	if (address < info->dlpi_addr)
		return NULL;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
			address - info->dlpi_addr - segment->p_vaddr < segment->p_memsz)
			return segment;
	}
	return NULL;
}

/* The address's offset in the file; false where it is in no file's part. */
static bool offset_of(const struct dl_phdr_info *info, uintptr_t address, uint64_t *ret_offset,
	uint64_t *ret_left)
{
	const ElfW(Phdr) *segment = segment_of(info, address);
	uint64_t into = segment ? address - info->dlpi_addr - segment->p_vaddr : 0;

	if (!segment || into >= segment->p_filesz)
		return false;
	*ret_offset = segment->p_offset + into;
	*ret_left = segment->p_filesz - into;
	return true;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct mapped *mapped = search->ret_mapped;
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	size_t length;
	uint64_t left;

	if (!segment_of(info, search->address))
		return 0;
	length = strlen(name);
	if (length >= sizeof(mapped->path) ||
		!offset_of(info, search->address, &mapped->offset, &mapped->left))
		return 1;
	if (!search->beside || !offset_of(info, search->beside, &mapped->beside, &left))
		mapped->beside = MAPPED_NOT_BESIDE;
	mapped->base = info->dlpi_addr;
	build_id_of_phdr(info, &mapped->id);
	memcpy(mapped->path, name, length + 1);
	search->is_found = true;
	return 1;
}

static int name_program(char path[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (length <= 0)
		return -ENOENT;
	path[length] = '\0';
	return 0;
}

static int make_absolute(char path[PATH_MAX])
{
	char folder[PATH_MAX];
	size_t length, rest = strlen(path) + 1;

	if (!getcwd(folder, sizeof(folder)))
		return -ENOENT;
	length = strlen(folder);
	if (length + 1 + rest > PATH_MAX)
		return -ENOENT;
	memmove(path + length + 1, path, rest);
	memcpy(path, folder, length);
	path[length] = '/';
	return 0;
}

int mapped_find(const void *address, const void *beside, struct mapped *ret_mapped)
{
	struct search search = {.address = (uintptr_t)address,
		.beside = (uintptr_t)beside,
		.ret_mapped = ret_mapped};

	dl_iterate_phdr(visit, &search);
	if (!search.is_found)
		return -ENOENT;
	if (!ret_mapped->path[0])
		return name_program(ret_mapped->path);
	return ret_mapped->path[0] == '/' ? 0 : make_absolute(ret_mapped->path);
}
