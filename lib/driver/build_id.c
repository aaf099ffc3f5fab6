/* Reading build-ids. Runs in the user's program and in hearthd; must not allocate, and must believe
 * nothing that a file says about its own sizes. */
#include "driver/build_id.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* More program headers or notes than any library has. */
#define HEADERS_MAX 64u
#define NOTES_MAX 4096u

/* A kind of note, by owner and type. */
struct kind {
	const char *owner;
	size_t owner_size; /* with its NUL */
	uint32_t type;
};

static const struct kind build_id_kind = {"GNU", sizeof("GNU"), NT_GNU_BUILD_ID};
static const struct kind mark_kind = {
	BUILD_ID_MARK_OWNER, sizeof(BUILD_ID_MARK_OWNER), BUILD_ID_MARK_TYPE};

/* The first note of a kind; what it says is cut to BUILD_ID_MAX bytes. */
static int find_in_notes(const char *notes, size_t size, size_t alignment, const struct kind *kind,
	struct build_id *ret_id)
{
	size_t at = 0;

	if (alignment != 8)
		alignment = 4;
	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, description;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		if (note.n_namesz > size - name)
			return -ENOENT;
		description = (name + note.n_namesz + alignment - 1) & ~(alignment - 1);
		if (description > size || note.n_descsz > size - description)
			return -ENOENT;
		if (note.n_type == kind->type && note.n_namesz == kind->owner_size &&
			!memcmp(notes + name, kind->owner, kind->owner_size) && note.n_descsz) {
			*ret_id = (struct build_id){.size = note.n_descsz};
			if (ret_id->size > BUILD_ID_MAX)
				ret_id->size = BUILD_ID_MAX;
			memcpy(ret_id->bytes, notes + description, ret_id->size);
			return 0;
		}
		at = (description + note.n_descsz + alignment - 1) & ~(alignment - 1);
		if (at > size)
			return -ENOENT;
	}
	return -ENOENT;
}

struct find {
	const ElfW(Dyn) * dynamic;
	struct build_id *ret_id;
	bool is_found;
};

int build_id_of_phdr(const struct dl_phdr_info *info, struct build_id *ret_id)
{
	ret_id->size = 0;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_NOTE &&
			!find_in_notes((const char *)info->dlpi_addr + header->p_vaddr,
				header->p_memsz, header->p_align, &build_id_kind, ret_id))
			return 0;
	}
	return -ENOENT;
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct find *find = data;
	bool is_it = false;

	for (size_t i = 0; i < info->dlpi_phnum; i++)
		is_it |= info->dlpi_phdr[i].p_type == PT_DYNAMIC &&
			 info->dlpi_addr + info->dlpi_phdr[i].p_vaddr == (uintptr_t)find->dynamic;
	if (!is_it)
		return 0;
	find->is_found = !build_id_of_phdr(info, find->ret_id);
	return 1;
}

static int build_id_of_dynamic(const ElfW(Dyn) * dynamic, struct build_id *ret_id)
{
	struct find find = {.dynamic = dynamic, .ret_id = ret_id};

	dl_iterate_phdr(visit, &find);
	return find.is_found ? 0 : -ENOENT;
}

int build_id_of_map(const struct link_map *map, struct build_id *ret_id)
{
	return build_id_of_dynamic(map->l_ld, ret_id);
}

static int find_in_file(int fd, const struct kind *kind, struct build_id *ret_id)
{
	Elf64_Ehdr header;
	char notes[NOTES_MAX];

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
		memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_phnum > HEADERS_MAX ||
		header.e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	for (unsigned int i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr segment;
		off_t at = (off_t)(header.e_phoff + i * sizeof(segment));
		ssize_t got;

		if (pread(fd, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
			return -ENOEXEC;
		if (segment.p_type != PT_NOTE)
			continue;
		got = pread(fd, notes,
			segment.p_filesz < sizeof(notes) ? segment.p_filesz : sizeof(notes),
			(off_t)segment.p_offset);
		if (got > 0 && !find_in_notes(notes, (size_t)got, segment.p_align, kind, ret_id))
			return 0;
	}
	return -ENOENT;
}

int build_id_of_file(int fd, struct build_id *ret_id)
{
	return find_in_file(fd, &build_id_kind, ret_id);
}

bool build_id_is_own(int fd)
{
	struct build_id own, other;

	if (!find_in_file(fd, &mark_kind, &other))
		return true;
	return !build_id_of_dynamic(_DYNAMIC, &own) && !build_id_of_file(fd, &other) &&
	       own.size == other.size && !memcmp(own.bytes, other.bytes, own.size);
}

void build_id_format(const struct build_id *id, char ret_text[2 * BUILD_ID_MAX + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < id->size; i++) {
		*ret_text++ = digits[id->bytes[i] >> 4];
		*ret_text++ = digits[id->bytes[i] & 15];
	}
	*ret_text = '\0';
}
