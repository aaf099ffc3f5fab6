/* Whether a part of a file is in memory, found out without reading it. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

/* Of the page at that offset; beyond the end counts as in memory. 1 or 0; -EOPNOTSUPP where the
 * kernel does not say: file systems that cannot read without waiting (overlayfs, NFS), for files of
 * others. `status` is the file's. Maps nothing that stays. */
int resident_page(int fd, const struct stat *status, uint64_t offset);
