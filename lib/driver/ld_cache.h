/* Reading /etc/ld.so.cache, the file that ldconfig writes and the loader searches. */
#pragma once

/* Calls `accept` with each path that the cache has for a 64-bit x86 library `name`, in the file's
 * order, until it returns 0. Returns 0 then; -ENOENT where none was accepted; -EBADMSG for a file
 * of an unknown format. Every offset in the file is checked. */
int ld_cache_find(const char *name, int (*accept)(const char *path, void *data), void *data);

/* Same, for a cache that is in memory already. */
int ld_cache_find_in(const char *cache, unsigned long size, const char *name,
	int (*accept)(const char *path, void *data), void *data);
