/* The build-id in an ELF file: what tells one build of the driver from another. */
#pragma once

#include <stdint.h>

#define ELF_BUILD_ID_MAX 32

/* 0 with the build-id, zero-padded and cut to what fits; -ENOEXEC where the file is no 64-bit ELF
 * object, -ENOENT where it has no build-id. Trusts nothing in the file. */
int elf_note_build_id(int fd, uint8_t ret_build_id[ELF_BUILD_ID_MAX]);
