/* Finding the real driver. Runs in the user's program, in its constructor and at the first driver
 * call, and in hearthd's keeper; must leave no descriptor, allocate nothing, and never take
 * ourselves for the driver. */
#include "driver/locate.h"

#include "base/at_start.h"
#include "driver/build_id.h"
#include "driver/ld_cache.h"
#include "driver/loader.h"

#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Where drivers are put that ld.so.cache may not know, in the order of preference. The forward-
 * compatibility folders come last: they shadow an installed driver only where ld.so.conf or
 * LD_LIBRARY_PATH say so, and then they have been found above. */
static const char *const more_folders[] = {
	"/usr/lib/x86_64-linux-gnu",
	"/usr/lib64",
	"/lib/x86_64-linux-gnu",
	"/lib64",
	"/usr/lib",
	"/usr/lib/x86_64-linux-gnu/nvidia/current",
	"/usr/local/nvidia/lib64",
	"/usr/local/nvidia/lib",
	"/usr/lib/wsl/lib",
	"/run/opengl-driver/lib",
	"/usr/local/cuda/compat",
	"/usr/local/cuda/compat/lib",
	"/usr/local/cuda/compat/lib.real",
};

static const char *const device_signs[] = {
	"/dev/nvidiactl",
	"/proc/driver/nvidia",
	"/dev/dxg",
	"/dev/nvmap",
	"/dev/nvhost-ctrl",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The list of a program with a very long LD_LIBRARY_PATH; a longer one is left out. It lies on the
 * stack, in its own size: the thread may have little. */
#define SEARCH_LIST_MAX 16384

AT_START bool locate_has_device(void)
{
	for (size_t i = 0; i < COUNT(device_signs); i++)
		if (!access(device_signs[i], F_OK))
			return true;
	return false;
}

const char *locate_folder(size_t i)
{
	return i < COUNT(more_folders) ? more_folders[i] : NULL;
}

const char *locate_sign(size_t i)
{
	return i < COUNT(device_signs) ? device_signs[i] : NULL;
}

static int check_header(int fd)
{
	Elf64_Ehdr header;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return -ENOEXEC;
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
		header.e_machine != EM_X86_64 || header.e_type != ET_DYN)
		return -ENOEXEC;
	return build_id_is_own(fd) ? -ELOOP : 0;
}

int locate_check(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return -errno;
	rc = check_header(fd);
	close(fd);
	return rc;
}

/* Tries FOLDER/libcuda.so.1. A relative folder is one of LD_LIBRARY_PATH's: relative to where the
 * program is now. */
static int try_folder(const char *folder, char ret_path[PATH_MAX])
{
	char here[PATH_MAX] = "";
	int length;

	if (*folder != '/' && !getcwd(here, sizeof(here)))
		return -errno;
	length = snprintf(ret_path, PATH_MAX, "%s%s%s%s" LOCATE_NAME, here, *here ? "/" : "",
		folder, *folder && folder[strlen(folder) - 1] != '/' ? "/" : "");
	if (length < 0 || length >= PATH_MAX)
		return -ENAMETOOLONG;
	return locate_check(ret_path);
}

/* The caller's own search list; `is_default` chooses the part after ld.so.cache, else the part
 * before it. */
static int try_list(const Dl_serinfo *list, bool is_default, char ret_path[PATH_MAX])
{
	for (unsigned int i = 0; i < list->dls_cnt; i++) {
		const Dl_serpath *entry = &list->dls_serpath[i];

		if (!!(entry->dls_flags & LA_SER_DEFAULT) == is_default &&
			!try_folder(entry->dls_name, ret_path))
			return 0;
	}
	return -ENOENT;
}

static int try_more(char ret_path[PATH_MAX])
{
	for (size_t i = 0; i < COUNT(more_folders); i++)
		if (!try_folder(more_folders[i], ret_path))
			return 0;
	return -ENOENT;
}

static int check_cached(const char *path, void *ret_path)
{
	if (strlen(path) >= PATH_MAX || locate_check(path))
		return -ENOENT;
	strcpy(ret_path, path);
	return 0;
}

static int search_unlisted(char ret_path[PATH_MAX])
{
	return ld_cache_find(LOCATE_NAME, check_cached, ret_path) ? try_more(ret_path) : 0;
}

static int search_listed(void *map, const Dl_serinfo *size, char ret_path[PATH_MAX])
{
	Dl_serinfo *list = alloca(size->dls_size);

	*list = *size;
	if (loader_info(map, RTLD_DI_SERINFO, list))
		return search_unlisted(ret_path);
	if (!try_list(list, false, ret_path) ||
		!ld_cache_find(LOCATE_NAME, check_cached, ret_path) ||
		!try_list(list, true, ret_path))
		return 0;
	return try_more(ret_path);
}

static int search(void *map, char ret_path[PATH_MAX])
{
	Dl_serinfo size;

	if (!map || loader_info(map, RTLD_DI_SERINFOSIZE, &size) || size.dls_size < sizeof(size) ||
		size.dls_size > SEARCH_LIST_MAX)
		return search_unlisted(ret_path);
	return search_listed(map, &size, ret_path);
}

bool locate_is_given(const char *driver)
{
	return driver && *driver == '/' && strlen(driver) < PATH_MAX && !locate_check(driver);
}

int locate_driver(const struct locate_request *request, char ret_path[PATH_MAX])
{
	void *map;

	if (locate_is_given(request->driver)) {
		strcpy(ret_path, request->driver);
		return 0;
	}
	map = request->caller ? loader_map_of(request->caller) : NULL;
	if (!map) {
		/* The program's own map stays open for good: this reference needs no closing. */
		map = loader_open(NULL, RTLD_LAZY);
	}
	return search(map, ret_path) ? -ENOENT : 0;
}
