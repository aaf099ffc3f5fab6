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
		.parts = {{.entry = {.kind = first,
				   .version = 1,
				   .header_size = sizeof(struct fatbin_entry),
				   .size = 32}},
			{.entry = {.kind = second,
				 .version = 1,
				 .header_size = sizeof(struct fatbin_entry),
				 .size = 32}}},
	};

	return fatbin;
}

static struct image_info inspect(const void *image)
{
	struct image_info info;

	image_inspect(image, 90, &info);
	return info;
}

Test(image, fat_binary_and_wrapper)
{
	struct fatbin fatbin = make(FATBIN_KIND_PTX, FATBIN_KIND_ELF);
	struct fatbin_wrapper wrapper = {FATBIN_WRAPPER_MAGIC, 1, &fatbin, NULL};

	cr_assert_eq(inspect(&fatbin).size, sizeof(fatbin));
	cr_assert_eq(inspect(&wrapper).size, sizeof(fatbin));
	cr_assert_not(inspect(&wrapper).is_compiled);
}

Test(image, fat_binary_with_ptx_only)
{
	struct fatbin fatbin = make(FATBIN_KIND_PTX, FATBIN_KIND_PTX);

	cr_assert(inspect(&fatbin).is_compiled);
}

Test(image, machine_code_for_other_devices)
{
	static const struct {
		uint32_t architecture;
		bool is_compiled;
	} rows[] = {{0, false}, {90, false}, {89, true}, {80, true}, {91, true}, {100, true}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fatbin fatbin = make(FATBIN_KIND_PTX, FATBIN_KIND_ELF);
		struct image_info info;

		fatbin.parts[1].entry.architecture = rows[i].architecture;
		cr_expect_eq(inspect(&fatbin).is_compiled, rows[i].is_compiled, "sm_%u",
			rows[i].architecture);
		image_inspect(&fatbin, 0, &info);
		cr_expect_not(info.is_compiled, "sm_%u", rows[i].architecture);
		/* Without PTX there is nothing to compile. */
		fatbin.parts[0].entry.kind = FATBIN_KIND_ELF;
		fatbin.parts[0].entry.architecture = 80;
		cr_expect_not(inspect(&fatbin).is_compiled, "sm_%u", rows[i].architecture);
	}
}

Test(image, an_old_entry_says_nothing_of_devices)
{
	struct fatbin fatbin = make(FATBIN_KIND_PTX, FATBIN_KIND_ELF);

	fatbin.parts[0].entry.header_size = 16;
	fatbin.parts[0].entry.size = 48;
	fatbin.parts[1].entry.architecture = 80;
	fatbin.parts[1].entry.header_size = 16;
	fatbin.parts[1].entry.size = 48;
	cr_assert_not(inspect(&fatbin).is_compiled);
}

Test(image, entries_that_leave_the_binary_are_not_followed)
{
	struct fatbin fatbin = make(FATBIN_KIND_PTX, FATBIN_KIND_ELF);

	fatbin.parts[0].entry.size = UINT64_MAX - 8;
	cr_assert(inspect(&fatbin).is_compiled);
	fatbin.header.size = UINT64_MAX - 8;
	cr_assert_eq(inspect(&fatbin).size, 0);
}

Test(image, cubin)
{
	static struct {
		Elf64_Ehdr header;
		char code[1000 - sizeof(Elf64_Ehdr)];
		Elf64_Shdr sections[3];
	} cubin = {.header = {.e_shoff = 1000, .e_shnum = 3, .e_shentsize = 64}};

	memcpy(cubin.header.e_ident, ELFMAG, SELFMAG);
	cubin.header.e_ident[EI_CLASS] = ELFCLASS64;
	cr_assert_eq(inspect(&cubin).size, 1192);
	/* What a section takes may lie behind the table; one without bits takes nothing. */
	cubin.sections[1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_offset = 1192, .sh_size = 8};
	cubin.sections[2] = (Elf64_Shdr){.sh_type = SHT_NOBITS, .sh_offset = 1200, .sh_size = 999};
	cr_assert_eq(inspect(&cubin).size, 1200);
	cubin.sections[1].sh_size = UINT64_MAX;
	cr_assert_eq(inspect(&cubin).size, 0);
	cubin.header.e_shoff = UINT64_MAX - 8;
	cr_assert_eq(inspect(&cubin).size, 0);
}

Test(image, ptx_text)
{
	static const char text[] = "//\n.version 8.0\n";

	cr_assert_eq(inspect(text).size, sizeof(text) - 1);
	cr_assert(inspect(text).is_compiled);
	cr_assert_not(inspect("SIMCUDA1\n").is_compiled);
	cr_assert_eq(inspect("\n.").size, 2);
}

Test(image, something_else)
{
	static const unsigned char bytes[64] = {0xff, 0xfe, 0xfd};

	cr_assert_eq(inspect(bytes).size, 0);
	cr_assert_not(inspect(bytes).is_compiled);
}
