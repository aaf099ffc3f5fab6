/* What an image is, from its first bytes. */
#include "driver/image.h"

#include "driver/abi.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>

struct fatbin {
	struct fatbin_header header;
	struct {
		struct fatbin_entry entry;
		char payload[32];
	} parts[2];
};

static struct fatbin make(uint16_t first, uint16_t second)
{
	struct fatbin fatbin = {
		.header = {FATBIN_MAGIC, 1, sizeof(struct fatbin_header), sizeof(fatbin.parts)},
		.parts = {{.entry = {first, 1, sizeof(struct fatbin_entry), 32}},
			{.entry = {second, 1, sizeof(struct fatbin_entry), 32}}},
	};

	return fatbin;
}

static struct image_info inspect(const void *image)
{
	struct image_info info;

	image_inspect(image, &info);
	return info;
}

Test(image, fat_binary_and_wrapper)
{
	struct fatbin fatbin = make(FATBIN_KIND_PTX, FATBIN_KIND_ELF);
	struct fatbin_wrapper wrapper = {FATBIN_WRAPPER_MAGIC, 1, &fatbin, NULL};

	cr_assert_eq(inspect(&fatbin).size, sizeof(fatbin));
	cr_assert_eq(inspect(&wrapper).size, sizeof(fatbin));
	cr_assert_not(inspect(&wrapper).is_ptx_only);
}

Test(image, fat_binary_with_ptx_only)
{
	struct fatbin fatbin = make(FATBIN_KIND_PTX, FATBIN_KIND_PTX);

	cr_assert(inspect(&fatbin).is_ptx_only);
}

Test(image, entries_that_leave_the_binary_are_not_followed)
{
	struct fatbin fatbin = make(FATBIN_KIND_PTX, FATBIN_KIND_ELF);

	fatbin.parts[0].entry.size = UINT64_MAX - 8;
	cr_assert(inspect(&fatbin).is_ptx_only);
	fatbin.header.size = UINT64_MAX - 8;
	cr_assert_eq(inspect(&fatbin).size, 0);
}

Test(image, cubin)
{
	Elf64_Ehdr header = {.e_shoff = 1000, .e_shnum = 3, .e_shentsize = 64};

	memcpy(header.e_ident, ELFMAG, SELFMAG);
	header.e_ident[EI_CLASS] = ELFCLASS64;
	cr_assert_eq(inspect(&header).size, 1192);
	header.e_shoff = UINT64_MAX - 8;
	cr_assert_eq(inspect(&header).size, 0);
}

Test(image, ptx_text)
{
	static const char text[] = "//\n.version 8.0\n";

	cr_assert_eq(inspect(text).size, sizeof(text) - 1);
	cr_assert(inspect(text).is_ptx_only);
	cr_assert_not(inspect("SIMCUDA1\n").is_ptx_only);
	cr_assert_eq(inspect("\n.").size, 2);
}

Test(image, something_else)
{
	static const unsigned char bytes[64] = {0xff, 0xfe, 0xfd};

	cr_assert_eq(inspect(bytes).size, 0);
	cr_assert_not(inspect(bytes).is_ptx_only);
}
