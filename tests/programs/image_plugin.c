/* Images as nvcc leaves them in a library: fat binaries in a section without relocations, and for
 * each a wrapper that points to it. Every image has four kernels. Linked at PLUGIN_NUMBER, so that
 * several files of this source differ in what their kernels are called. */
#include <stdint.h>

#define TEXT(value) TEXT_OF(value)
#define TEXT_OF(value) #value
#define SUFFIX "_" TEXT(PLUGIN_NUMBER) "_"

struct fat {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
	char text[];
};

struct wrapper {
	uint32_t magic, version;
	const void *data, *more;
};

#define IMAGE_TEXT(number, size)                                                                   \
	"SIMCUDA1\nsize " #size "\nkernel fill" SUFFIX #number                                     \
	" fill\nkernel scale" SUFFIX #number " scale\nkernel spin" SUFFIX #number                  \
	" spin\nkernel fault" SUFFIX #number " fault\n"
#define IMAGE(number, bytes)                                                                       \
	static const struct fat fat_##number                                                       \
		__attribute__((section(".nv_fatbin"), aligned(8))) = {0xba55ed50u, 1, 16,          \
			sizeof(IMAGE_TEXT(number, bytes)), {IMAGE_TEXT(number, bytes)}};
#define WRAPPER(number)                                                                            \
	{                                                                                          \
		0x466243b1u, 1, &fat_##number, 0                                                   \
	}

IMAGE(0, 65536)
IMAGE(1, 131072)
IMAGE(2, 262144)
IMAGE(3, 524288)
IMAGE(4, 1048576)
IMAGE(5, 4194304)
IMAGE(6, 8388608)
IMAGE(7, 33554432)

#pragma GCC visibility push(default)
struct wrapper image_wrappers[] __attribute__((section(".nvFatBinSegment"))) = {WRAPPER(0),
	WRAPPER(1), WRAPPER(2), WRAPPER(3), WRAPPER(4), WRAPPER(5), WRAPPER(6), WRAPPER(7)};
const int image_count = sizeof(image_wrappers) / sizeof(*image_wrappers);
const int image_plugin_number = PLUGIN_NUMBER;
#pragma GCC visibility pop
