/* Build-ids: what tells one build of the driver from another, and us from the driver. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_MAX 32

struct build_id {
	uint8_t bytes[BUILD_ID_MAX]; /* zero-padded */
	size_t size;                 /* 0 = none */
};

/* The build-id of a loaded object. 0, or -ENOENT where it has none. */
int build_id_of_map(const struct link_map *map, struct build_id *ret_id);

/* Same, of one that dl_iterate_phdr visits. */
int build_id_of_phdr(const struct dl_phdr_info *info, struct build_id *ret_id);

/* The build-id in an ELF file, read with pread. 0, -ENOENT, -ENOEXEC. */
int build_id_of_file(int fd, struct build_id *ret_id);

/* The note that marks libhearth.so and its alias, of whatever version. */
#define BUILD_ID_MARK_OWNER "Hearth"
#define BUILD_ID_MARK_TYPE 1

/* Whether the file is Hearth's: it bears that mark, or is the very object that this code is part
 * of, the same build-id. */
bool build_id_is_own(int fd);

/* Lower-case hexadecimal, NUL-terminated. */
void build_id_format(const struct build_id *id, char ret_text[2 * BUILD_ID_MAX + 1]);
