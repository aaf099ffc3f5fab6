/* Searches in ELF files for `hearth doctor`: which symbols a library defines, and whether a program
 * carries the absolute path of a driver. Same rules as elf.c: no offset or size is trusted. */
#include "doctor/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SECTIONS 4096
#define MAX_SYMBOLS (1u << 20)
#define MAX_NAMES (64ull << 20) /* bytes of a .dynstr */
#define SCAN_CHUNK (1u << 20)

static ssize_t read_some(int fd, void *bytes, size_t size, uint64_t offset)
{
	size_t have = 0;

	if (offset > INT64_MAX - size)
		return 0;
	while (have < size) {
		ssize_t got = pread(fd, (char *)bytes + have, size - have, (off_t)(offset + have));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

/* A part of the file on the heap, with a NUL behind it. Returns 0, ELF_DAMAGED, or -errno. */
static int load(int fd, uint64_t offset, uint64_t size, uint64_t limit, char **ret_bytes)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char *bytes;
	ssize_t got;

	if (end < 0)
		return -errno;
	if (size > limit || offset > (uint64_t)end || size > (uint64_t)end - offset)
		return ELF_DAMAGED;
	bytes = malloc(size + 1);
	if (!bytes)
		return -ENOMEM;
	got = read_some(fd, bytes, size, offset);
	if (got < 0 || (uint64_t)got != size) {
		free(bytes);
		return got < 0 ? (int)got : ELF_DAMAGED;
	}
	bytes[size] = 0;
	*ret_bytes = bytes;
	return 0;
}

static int find_symbols(int fd, Elf64_Shdr *ret_symbols, Elf64_Shdr *ret_names)
{
	Elf64_Ehdr header;
	Elf64_Shdr *sections = NULL;
	ssize_t got = read_some(fd, &header, sizeof(header), 0);
	int rc;

	if (got < 0)
		return (int)got;
	if (got != sizeof(header) || memcmp(header.e_ident, ELFMAG, SELFMAG))
		return ELF_NO;
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
		return ELF_NO;
	if (!header.e_shnum || header.e_shnum > MAX_SECTIONS ||
		header.e_shentsize != sizeof(*sections))
		return ELF_DAMAGED;
	rc = load(fd, header.e_shoff, header.e_shnum * sizeof(*sections),
		MAX_SECTIONS * sizeof(*sections), (char **)&sections);
	if (rc)
		return rc;
	rc = ELF_DAMAGED;
	for (unsigned i = 0; i < header.e_shnum; i++) {
		if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= header.e_shnum)
			continue;
		*ret_symbols = sections[i];
		*ret_names = sections[sections[i].sh_link];
		rc = 0;
		break;
	}
	free(sections);
	return rc;
}

static const char *first_defined(const Elf64_Sym *symbols, size_t count, const char *names,
	size_t size, const char *const *wanted)
{
	for (; *wanted; wanted++) {
		for (size_t i = 0; i < count; i++) {
			/* names[size] is 0, so that the comparison ends inside. */
			if (symbols[i].st_shndx != SHN_UNDEF && symbols[i].st_name < size &&
				!strcmp(names + symbols[i].st_name, *wanted))
				return *wanted;
		}
	}
	return NULL;
}

int elf_defines(int fd, const char *const *names, const char **ret_name)
{
	Elf64_Shdr symbols = {0}, strings = {0};
	char *table = NULL, *text = NULL;
	int rc = find_symbols(fd, &symbols, &strings);

	if (rc)
		return rc;
	rc = load(fd, symbols.sh_offset, symbols.sh_size, MAX_SYMBOLS * sizeof(Elf64_Sym), &table);
	if (!rc)
		rc = load(fd, strings.sh_offset, strings.sh_size, MAX_NAMES, &text);
	if (!rc)
		*ret_name = first_defined((const Elf64_Sym *)(void *)table,
			symbols.sh_size / sizeof(Elf64_Sym), text, strings.sh_size, names);
	free(table);
	free(text);
	return rc;
}

static bool is_path_byte(char c)
{
	return c > ' ' && c < 0x7f && !strchr("\"'`|<>%", c);
}

/* A piece of the file, and whether it holds the file's begin and end. */
struct piece {
	char *bytes;
	size_t size;
	bool is_first, is_last;
};

/* The absolute path around a match, or NULL. A string that the piece cuts off doesn't count: the
 * next piece, or the one before, has it whole. */
static char *path_around(const struct piece *piece, size_t at, size_t match)
{
	const char *bytes = piece->bytes;
	size_t begin = at, end = at + match;

	while (begin > 0 && is_path_byte(bytes[begin - 1]))
		begin--;
	while (end < piece->size && is_path_byte(bytes[end]))
		end++;
	if ((!begin && !piece->is_first) || (end == piece->size && !piece->is_last))
		return NULL;
	/* "%s/libcuda.so" and the like begin with a %, and "see /a/libcuda.so" with other words:
	 * only a whole string that begins with / counts. */
	if (begin == at || bytes[begin] != '/' || bytes[at - 1] != '/' ||
		(begin && bytes[begin - 1]))
		return NULL;
	if (end - begin >= ELF_TEXT_SIZE ||
		strspn(bytes + at + match, ".0123456789") < end - (at + match))
		return NULL;
	return strndup(bytes + begin, end - begin);
}

static char *path_in(const struct piece *piece)
{
	static const char wanted[] = "libcuda.so";
	const size_t match = sizeof(wanted) - 1;
	const char *from = piece->bytes, *end = piece->bytes + piece->size, *hit;
	char *path = NULL;

	while (!path && (hit = memmem(from, (size_t)(end - from), wanted, match))) {
		path = path_around(piece, (size_t)(hit - piece->bytes), match);
		from = hit + match;
	}
	return path;
}

int elf_driver_path(int fd, char **ret_path)
{
	struct piece piece = {.bytes = malloc(SCAN_CHUNK + 1), .is_first = true};
	uint64_t offset = 0;
	char *path = NULL;
	int rc = 0;

	if (!piece.bytes)
		return -ENOMEM;
	while (!path && !piece.is_last && offset < ELF_SCAN_LIMIT) {
		ssize_t got = read_some(fd, piece.bytes, SCAN_CHUNK, offset);

		if (got < 0)
			rc = (int)got;
		if (got <= 0)
			break;
		piece.size = (size_t)got;
		piece.bytes[piece.size] = 0;
		piece.is_last = piece.size < SCAN_CHUNK;
		path = path_in(&piece);
		piece.is_first = false;
		/* Pieces overlap by more than the longest path. */
		offset += SCAN_CHUNK - ELF_TEXT_SIZE - 1;
	}
	free(piece.bytes);
	if (!rc)
		*ret_path = path;
	return rc;
}
