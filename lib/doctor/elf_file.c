/* A small ELF reader for `hearth doctor`. Runs in the hearth tool only, on files that it did not
 * choose; it must never trust an offset, a size or a count, nor loop without a bound. */
#include "doctor/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SEGMENTS 256
#define MAX_DYNAMIC 1024

/* Reads size bytes, fewer where the file ends before. Returns 0, ELF_DAMAGED where the offset can
 * be none, or -errno. */
static int read_some(int fd, uint64_t offset, void *ret_bytes, size_t size, size_t *ret_size)
{
	char *bytes = ret_bytes;
	size_t left = size;

	if (offset > INT64_MAX - size)
		return ELF_DAMAGED;
	while (left) {
		ssize_t got = pread(fd, bytes, left, (off_t)offset);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		bytes += got;
		offset += (uint64_t)got;
		left -= (size_t)got;
	}
	*ret_size = size - left;
	return 0;
}

/* Reads exactly size bytes. Returns 0, ELF_DAMAGED where the file ends before them, or -errno. */
static int read_at(int fd, uint64_t offset, void *ret_bytes, size_t size)
{
	size_t have = 0;
	int rc = read_some(fd, offset, ret_bytes, size, &have);

	return rc ? rc : have == size ? 0 : ELF_DAMAGED;
}

/* Reads a NUL-terminated string that may take at most limit bytes with its NUL. */
static int read_text(int fd, uint64_t offset, uint64_t limit, char **ret_text)
{
	char bytes[ELF_TEXT_SIZE];
	size_t size = limit < sizeof(bytes) ? (size_t)limit : sizeof(bytes), have = 0;
	int rc = read_some(fd, offset, bytes, size, &have);

	if (rc)
		return rc;
	if (!memchr(bytes, 0, have))
		return ELF_DAMAGED;
	*ret_text = strdup(bytes);
	return *ret_text ? 0 : -ENOMEM;
}

static int read_header(int fd, struct elf_facts *facts, Elf64_Ehdr *ret_header)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr narrow;
		Elf64_Ehdr wide;
	} header = {0};
	int rc = read_at(fd, 0, header.ident, EI_NIDENT);

	if (rc == ELF_DAMAGED || (!rc && memcmp(header.ident, ELFMAG, SELFMAG)))
		return ELF_NO;
	if (rc)
		return rc;
	if (header.ident[EI_CLASS] == ELFCLASS32) {
		rc = read_at(fd, 0, &header, sizeof(header.narrow));
		facts->bits = 32;
	} else if (header.ident[EI_CLASS] == ELFCLASS64) {
		rc = read_at(fd, 0, &header, sizeof(header.wide));
		facts->bits = 64;
	} else {
		return ELF_DAMAGED;
	}
	if (rc)
		return rc;
	/* e_type and e_machine lie at the same place in both. */
	facts->type = header.wide.e_type;
	facts->machine = header.wide.e_machine;
	facts->is_native = facts->bits == 64 && header.ident[EI_DATA] == ELFDATA2LSB &&
			   facts->machine == EM_X86_64;
	*ret_header = header.wide;
	return 0;
}

/* The file offset of an address, and how many bytes of the file follow it in its segment. */
static int address_to_offset(const Elf64_Phdr *segments, size_t count, uint64_t address,
	uint64_t *ret_offset, uint64_t *ret_left)
{
	for (size_t i = 0; i < count; i++) {
		const Elf64_Phdr *load = &segments[i];

		if (load->p_type != PT_LOAD || address < load->p_vaddr ||
			address - load->p_vaddr >= load->p_filesz)
			continue;
		*ret_left = load->p_filesz - (address - load->p_vaddr);
		if (__builtin_add_overflow(load->p_offset, address - load->p_vaddr, ret_offset))
			return ELF_DAMAGED;
		return 0;
	}
	return ELF_DAMAGED;
}

/* Takes the string of one dynamic entry; a second one of the same tag is ignored. */
static int take_text(int fd, uint64_t strings, uint64_t size, uint64_t at, char **text)
{
	if (*text)
		return 0;
	if (at >= size)
		return ELF_DAMAGED;
	return read_text(fd, strings + at, size - at, text);
}

static int read_dynamic(int fd, const Elf64_Phdr *segments, size_t count, const Elf64_Phdr *dynamic,
	struct elf_facts *facts)
{
	Elf64_Dyn entries[MAX_DYNAMIC];
	size_t n = dynamic->p_filesz / sizeof(entries[0]);
	uint64_t strings = 0, size = 0, left = 0;
	int rc;

	if (n > MAX_DYNAMIC)
		n = MAX_DYNAMIC;
	rc = read_at(fd, dynamic->p_offset, entries, n * sizeof(entries[0]));
	if (rc)
		return rc;
	for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL; i++) {
		if (entries[i].d_tag == DT_STRTAB)
			strings = entries[i].d_un.d_ptr;
		else if (entries[i].d_tag == DT_STRSZ)
			size = entries[i].d_un.d_val;
	}
	if (!strings)
		return 0;
	rc = address_to_offset(segments, count, strings, &strings, &left);
	if (rc)
		return rc;
	if (size > left)
		size = left;
	for (size_t i = 0; i < n && entries[i].d_tag != DT_NULL && !rc; i++) {
		uint64_t at = entries[i].d_un.d_val;

		switch (entries[i].d_tag) {
		case DT_SONAME:
			rc = take_text(fd, strings, size, at, &facts->soname);
			break;
		case DT_RPATH:
			rc = take_text(fd, strings, size, at, &facts->rpath);
			break;
		case DT_RUNPATH:
			rc = take_text(fd, strings, size, at, &facts->runpath);
			break;
		case DT_NEEDED:
			if (facts->needed_count == ELF_MAX_NEEDED)
				break;
			rc = take_text(fd, strings, size, at, &facts->needed[facts->needed_count]);
			if (!rc)
				facts->needed_count++;
			break;
		default:
			break;
		}
	}
	return rc;
}

static int read_native(int fd, const Elf64_Ehdr *header, struct elf_facts *facts)
{
	Elf64_Phdr segments[MAX_SEGMENTS];
	size_t count = header->e_phnum;
	const Elf64_Phdr *dynamic = NULL;
	int rc = 0;

	if (!count) /* a relocatable file: nothing that could be run */
		return 0;
	if (count > MAX_SEGMENTS || header->e_phentsize != sizeof(segments[0]))
		return ELF_DAMAGED;
	rc = read_at(fd, header->e_phoff, segments, count * sizeof(segments[0]));
	for (size_t i = 0; i < count && !rc; i++) {
		if (segments[i].p_type == PT_INTERP && !facts->interpreter)
			rc = read_text(fd, segments[i].p_offset, segments[i].p_filesz,
				&facts->interpreter);
		else if (segments[i].p_type == PT_DYNAMIC && !dynamic)
			dynamic = &segments[i];
	}
	if (!rc && dynamic)
		rc = read_dynamic(fd, segments, count, dynamic, facts);
	facts->is_static = !facts->interpreter;
	return rc;
}

int elf_read(int fd, struct elf_facts *ret_facts)
{
	struct elf_facts facts = {0};
	Elf64_Ehdr header;
	int rc = read_header(fd, &facts, &header);

	if (!rc && facts.is_native)
		rc = read_native(fd, &header, &facts);
	if (rc)
		elf_done(&facts);
	else
		*ret_facts = facts;
	return rc;
}

void elf_done(struct elf_facts *facts)
{
	free(facts->interpreter);
	free(facts->soname);
	free(facts->rpath);
	free(facts->runpath);
	for (size_t i = 0; i < facts->needed_count; i++)
		free(facts->needed[i]);
	*facts = (struct elf_facts){0};
}
