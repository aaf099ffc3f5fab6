/* What a program hands to cuModuleLoadData and cuLibraryLoadData: a fat-binary wrapper, a fat
 * binary, an ELF cubin or PTX text. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Every PTX text has this directive, at most comments stand before it. */
#define PTX_SIGN ".version"

struct image_info {
	uint64_t size;    /* bytes; 0 where it cannot be told safely */
	bool is_compiled; /* PTX text, or a fat binary with PTX and no machine code for the device:
			   * the driver compiles it, or finds it in its JIT cache */
	bool has_ptx; /* PTX text, or a fat binary with anything but machine code: which of them the
		       * driver takes may depend on its options */
};

/* Does it begin as text does? Reads two bytes. */
bool image_is_text(const void *image);

/* Looks at an image that the driver has just accepted, so that what its headers promise is there.
 * `sm` is the device's compute capability, 90 for 9.0; 0: not known, any machine code counts. */
void image_inspect(const void *image, unsigned int sm, struct image_info *ret_info);
