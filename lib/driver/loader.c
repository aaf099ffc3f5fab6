/* Finding dlopen and its family. Runs in the user's program at the first driver call and in the
 * constructor's search for a driver; takes the loader's lock, so never on a speculative thread. */
#include "driver/loader.h"

#include "driver/loaded.h"

#include <stddef.h>

/* Weak, by their oldest version: on glibc >= 2.34 libc has them; on older ones they are there if
 * libdl is. */
#define OLD_VERSION(name, version)                                                                 \
	extern __typeof__(name) old_##name __attribute__((weak));                                  \
	__asm__(".symver old_" #name ", " #name "@" version)
OLD_VERSION(dlopen, "GLIBC_2.2.5");
OLD_VERSION(dlsym, "GLIBC_2.2.5");
OLD_VERSION(dlvsym, "GLIBC_2.2.5");
OLD_VERSION(dlclose, "GLIBC_2.2.5");
OLD_VERSION(dlinfo, "GLIBC_2.3.3");
OLD_VERSION(dladdr1, "GLIBC_2.3.3");

struct loader {
	__typeof__(dlopen) *open;
	__typeof__(dlsym) *symbol;
	__typeof__(dlvsym) *symbol_version;
	__typeof__(dlclose) *close;
	__typeof__(dlinfo) *info;
	__typeof__(dladdr1) *address;
};

static bool is_complete(const struct loader *loader)
{
	return loader->open && loader->symbol && loader->symbol_version && loader->close &&
	       loader->info && loader->address;
}

/* glibc 2.17..2.33 in a program without libdl: these versions are history, so their private entry
 * can be relied on. */
static bool open_libdl(struct loader *ret_loader)
{
	struct loaded libc, libdl;
	void *(*libc_open)(const char *, int);
	struct link_map *map;

	if (loaded_find("libc.so.6", &libc))
		return false;
	libc_open = (void *(*)(const char *, int))loaded_symbol(&libc, "__libc_dlopen_mode");
	/* The flag that marks a call from within libc: this entry insists on it. */
	map = libc_open ? libc_open("libdl.so.2", RTLD_NOW | (int)0x80000000) : NULL;
	if (!map || loaded_from_map(map, &libdl))
		return false;
	ret_loader->open = (__typeof__(dlopen) *)loaded_symbol(&libdl, "dlopen");
	ret_loader->symbol = (__typeof__(dlsym) *)loaded_symbol(&libdl, "dlsym");
	ret_loader->symbol_version = (__typeof__(dlvsym) *)loaded_symbol(&libdl, "dlvsym");
	ret_loader->close = (__typeof__(dlclose) *)loaded_symbol(&libdl, "dlclose");
	ret_loader->info = (__typeof__(dlinfo) *)loaded_symbol(&libdl, "dlinfo");
	ret_loader->address = (__typeof__(dladdr1) *)loaded_symbol(&libdl, "dladdr1");
	return is_complete(ret_loader);
}

static bool find_loader(struct loader *ret_loader)
{
	*ret_loader = (struct loader){
		old_dlopen, old_dlsym, old_dlvsym, old_dlclose, old_dlinfo, old_dladdr1};
	return is_complete(ret_loader) || open_libdl(ret_loader);
}

void *loader_open(const char *path, int flags)
{
	struct loader loader;

	return find_loader(&loader) ? loader.open(path, flags) : NULL;
}

void *loader_symbol(void *handle, const char *name)
{
	struct loader loader;

	return find_loader(&loader) ? loader.symbol(handle, name) : NULL;
}

void *loader_symbol_version(void *handle, const char *name, const char *version)
{
	struct loader loader;

	return find_loader(&loader) ? loader.symbol_version(handle, name, version) : NULL;
}

int loader_close(void *handle)
{
	struct loader loader;

	return find_loader(&loader) ? loader.close(handle) : -1;
}

int loader_info(void *handle, int request, void *ret_value)
{
	struct loader loader;

	return find_loader(&loader) ? loader.info(handle, request, ret_value) : -1;
}

struct link_map *loader_map_of(const void *address)
{
	struct loader loader;
	struct link_map *map = NULL;
	Dl_info info;

	if (!find_loader(&loader) ||
		!loader.address(address, &info, (void **)&map, RTLD_DL_LINKMAP))
		return NULL;
	return map;
}
