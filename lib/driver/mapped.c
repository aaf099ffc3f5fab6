/* From addresses to files. Runs in the user's program, also inside its calls of the driver; must
 * not allocate or take the loader's main lock (no dl* call but dl_iterate_phdr). */
#include "driver/mapped.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct search {
	uintptr_t address;
	struct mapped *ret_mapped;
	bool is_found;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct mapped *mapped = search->ret_mapped;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t into = search->address - info->dlpi_addr - segment->p_vaddr;
		size_t length;

		if (segment->p_type != PT_LOAD || into >= segment->p_memsz)
			continue;
		length = info->dlpi_name ? strlen(info->dlpi_name) : 0;
		if (into >= segment->p_filesz || length >= sizeof(mapped->path))
			return 1;
		mapped->base = info->dlpi_addr;
		mapped->offset = segment->p_offset + into;
		mapped->left = segment->p_filesz - into;
		build_id_of_phdr(info, &mapped->id);
		memcpy(mapped->path, info->dlpi_name ? info->dlpi_name : "", length + 1);
		search->is_found = true;
		return 1;
	}
	return 0;
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

int mapped_find(const void *address, struct mapped *ret_mapped)
{
	struct search search = {.address = (uintptr_t)address, .ret_mapped = ret_mapped};

	dl_iterate_phdr(visit, &search);
	if (!search.is_found)
		return -ENOENT;
	if (!ret_mapped->path[0])
		return name_program(ret_mapped->path);
	return ret_mapped->path[0] == '/' ? 0 : make_absolute(ret_mapped->path);
}
