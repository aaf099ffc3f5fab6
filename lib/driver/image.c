/* Looking at images. Runs in the user's program after a successful load; reads headers only, and of
 * PTX the text's length. */
#include "driver/image.h"

#include "driver/abi.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

/* Far above any image: what claims to be larger is something else. */
#define SIZE_LIMIT (UINT64_C(1) << 32)

/* Machine code runs on its own minor version and on later ones of the same major. */
static bool runs_on(uint32_t architecture, unsigned int sm)
{
	return !sm || !architecture ||
	       (architecture / 10 == sm / 10 && architecture % 10 <= sm % 10);
}

/* An entry's head takes so many bytes at least. */
#define ENTRY_HEAD offsetof(struct fatbin_entry, unused)

static void inspect_fatbin(const char *data, unsigned int sm, struct image_info *ret_info)
{
	struct fatbin_header header;
	bool has_ptx = false, has_code = false;
	uint64_t at, end;

	memcpy(&header, data, sizeof(header));
	if (header.magic != FATBIN_MAGIC || header.header_size < sizeof(header) ||
		header.size > SIZE_LIMIT)
		return;
	end = header.header_size + header.size;
	ret_info->size = end;
	for (at = header.header_size; end - at >= ENTRY_HEAD;) {
		struct fatbin_entry entry = {0};

		memcpy(&entry, data + at, ENTRY_HEAD);
		if (entry.header_size >= sizeof(entry) && end - at >= sizeof(entry))
			memcpy(&entry, data + at, sizeof(entry));
		has_ptx |= entry.kind == FATBIN_KIND_PTX;
		ret_info->has_ptx |= entry.kind != FATBIN_KIND_ELF;
		has_code |= entry.kind == FATBIN_KIND_ELF && runs_on(entry.architecture, sm);
		if (entry.header_size < ENTRY_HEAD || entry.header_size > end - at ||
			entry.size > end - at - entry.header_size)
			break;
		at += entry.header_size + entry.size;
	}
	ret_info->is_compiled = has_ptx && !has_code;
}

/* The last byte that a section lies on; `end` at least. */
static uint64_t end_of_sections(const char *data, const Elf64_Ehdr *header, uint64_t end)
{
	for (unsigned int i = 0; header->e_shoff && i < header->e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, data + header->e_shoff + i * sizeof(section), sizeof(section));
		if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL)
			continue;
		if (section.sh_offset > SIZE_LIMIT || section.sh_size > SIZE_LIMIT)
			return 0;
		if (section.sh_offset + section.sh_size > end)
			end = section.sh_offset + section.sh_size;
	}
	return end;
}

static void inspect_elf(const char *data, struct image_info *ret_info)
{
	Elf64_Ehdr header;
	uint64_t sections_end, segments_end;

	memcpy(&header, data, sizeof(header));
	sections_end = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
	segments_end = header.e_phoff + (uint64_t)header.e_phnum * header.e_phentsize;
	/* The offsets first: with a huge one the sum would have wrapped around. */
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shoff > SIZE_LIMIT ||
		header.e_phoff > SIZE_LIMIT)
		return;
	ret_info->size = sections_end > segments_end ? sections_end : segments_end;
	if (header.e_shentsize == sizeof(Elf64_Shdr))
		ret_info->size = end_of_sections(data, &header, ret_info->size);
}

static bool is_text_byte(unsigned char byte)
{
	return (byte >= ' ' && byte < 0x7f) || (byte >= '\t' && byte <= '\r');
}

bool image_is_text(const void *image)
{
	const unsigned char *bytes = image;

	return is_text_byte(bytes[0]) && is_text_byte(bytes[1]);
}

void image_inspect(const void *image, unsigned int sm, struct image_info *ret_info)
{
	uint32_t magic;

	*ret_info = (struct image_info){0};
	/* PTX may be shorter than any header: look at one byte at a time. */
	if (image_is_text(image)) {
		ret_info->size = strlen(image);
		ret_info->is_compiled = ret_info->has_ptx = strstr(image, PTX_SIGN);
		return;
	}
	memcpy(&magic, image, sizeof(magic));
	if (magic == FATBIN_WRAPPER_MAGIC) {
		struct fatbin_wrapper wrapper;

		memcpy(&wrapper, image, sizeof(wrapper));
		if (wrapper.data)
			inspect_fatbin(wrapper.data, sm, ret_info);
	} else if (magic == FATBIN_MAGIC) {
		inspect_fatbin(image, sm, ret_info);
	} else if (!memcmp(image, ELFMAG, SELFMAG)) {
		inspect_elf(image, ret_info);
	}
}
