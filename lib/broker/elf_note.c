/* Reading a build-id with pread, on the driver file's thread (elf(5), NT_GNU_BUILD_ID). */
#include "broker/elf_note.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define NOTES_MAX 4096 /* of one segment that are looked at */
#define SEGMENTS_MAX 64

static bool read_at(int fd, void *ret_bytes, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, ret_bytes, size, (off_t)offset) == (ssize_t)size;
}

static size_t aligned(uint32_t size)
{
	return ((size_t)size + 3) & ~(size_t)3;
}

static int find_in(const uint8_t *notes, size_t size, uint8_t ret_build_id[ELF_BUILD_ID_MAX])
{
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name = at + sizeof(note), text;

		memcpy(&note, notes + at, sizeof(note));
		if (aligned(note.n_namesz) > size - name)
			return -ENOENT;
		text = name + aligned(note.n_namesz);
		if (aligned(note.n_descsz) > size - text)
			return -ENOENT;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(ELF_NOTE_GNU) &&
			!memcmp(notes + name, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU))) {
			size_t length = note.n_descsz;

			memset(ret_build_id, 0, ELF_BUILD_ID_MAX);
			memcpy(ret_build_id, notes + text,
				length < ELF_BUILD_ID_MAX ? length : ELF_BUILD_ID_MAX);
			return length ? 0 : -ENOENT;
		}
		at = text + aligned(note.n_descsz);
	}
	return -ENOENT;
}

int elf_note_build_id(int fd, uint8_t ret_build_id[ELF_BUILD_ID_MAX])
{
	uint8_t notes[NOTES_MAX];
	Elf64_Ehdr head;

	if (!read_at(fd, &head, sizeof(head), 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) ||
		head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	for (unsigned int i = 0; i < head.e_phnum && i < SEGMENTS_MAX; i++) {
		Elf64_Phdr segment;
		size_t size;

		if (!read_at(fd, &segment, sizeof(segment), head.e_phoff + i * sizeof(segment)))
			return -ENOEXEC;
		size = segment.p_filesz < NOTES_MAX ? segment.p_filesz : NOTES_MAX;
		if (segment.p_type == PT_NOTE && read_at(fd, notes, size, segment.p_offset) &&
			!find_in(notes, size, ret_build_id))
			return 0;
	}
	return -ENOENT;
}
