/* The dynamic loader's functions, bound so that libhearth.so loads on every glibc from 2.17 on and
 * needs no library but libc. From 2.34 on they are in libc itself. Before, they are in libdl, which
 * the program may lack: then libdl is opened first, through libc's own entry of those versions.
 *
 * All of these take the loader's lock. They return NULL or -1 where there is no loader to ask. */
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>

void *loader_open(const char *path, int flags);
void *loader_symbol(void *handle, const char *name);
void *loader_symbol_version(void *handle, const char *name, const char *version);
int loader_close(void *handle);
int loader_info(void *handle, int request, void *ret_value);
/* The link map of the object that holds an address, or NULL. */
struct link_map *loader_map_of(const void *address);
