/* Module and library images: which kernels one holds and how long it takes to load.
 *
 * Ours is text, so that tests can write it:
 *   SIMCUDA1
 *   size 1048576            what the image is taken to weigh; its own length otherwise
 *   kernel NAME OPERATION   fill, add, scale, copy, spin, nothing or fault (sim_launch.c)
 * ELF, PTX and fat binaries of other makers are taken too: their kernels do nothing. Runs on the
 * thread that loads; trusts an image's own sizes, as the real driver does. */
#include "sim/sim.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define WRAPPER_MAGIC 0x466243b1u
#define FAT_MAGIC 0xba55ed50u
#define OURS "SIMCUDA1\n"
#define MAX_KERNELS 4096

struct wrapper {
	uint32_t magic, version;
	const void *data;
	const void *unused;
};

struct fat_header {
	uint32_t magic;
	uint16_t version, header_size;
	uint64_t size;
};

struct sim_image {
	uint64_t size;
	bool has_any_kernel;   /* an image whose names we cannot read */
	bool is_broken;        /* a library takes any text, and finds out when it is used */
	const void *preserved; /* the caller's own, to be read again; NULL = not needed any more */
	int count;
	struct {
		uint64_t hash; /* of its name */
		char name[SIM_NAME_SIZE];
		enum sim_work_kind work;
	} * kernels;
};

static const struct {
	const char *name;
	enum sim_work_kind work;
} operations[] = {{"fill", SIM_WORK_SET}, {"add", SIM_WORK_ADD}, {"scale", SIM_WORK_SCALE},
	{"copy", SIM_WORK_COPY}, {"spin", SIM_WORK_SPIN}, {"nothing", SIM_WORK_NOTHING},
	{"fault", SIM_WORK_FAULT}};

/* FNV-1a */
uint64_t sim_image_hash(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	for (const char *at = text; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 1099511628211u;
	return hash;
}

static int add(struct sim_image *image, const char *name, size_t length, enum sim_work_kind work)
{
	void *larger;

	if (!length || length >= SIM_NAME_SIZE || image->count >= MAX_KERNELS)
		return SIM_INVALID_IMAGE;
	larger = realloc(image->kernels, ((size_t)image->count + 1) * sizeof(*image->kernels));
	if (!larger)
		return SIM_OUT_OF_MEMORY;
	image->kernels = larger;
	memcpy(image->kernels[image->count].name, name, length);
	image->kernels[image->count].name[length] = '\0';
	image->kernels[image->count].hash = sim_image_hash(image->kernels[image->count].name);
	image->kernels[image->count++].work = work;
	return SIM_SUCCESS;
}

static int add_ours(struct sim_image *image, const char *line)
{
	char name[SIM_NAME_SIZE], operation[16];

	if (sscanf(line, "kernel %127s %15s", name, operation) != 2)
		return SIM_INVALID_IMAGE;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (!strcmp(operations[i].name, operation))
			return add(image, name, strlen(name), operations[i].work);
	return SIM_INVALID_IMAGE;
}

static int read_ours(struct sim_image *image, const char *text)
{
	int rc = SIM_SUCCESS;

	if (!image->size)
		image->size = strlen(text);
	for (const char *line = text + strlen(OURS); !rc && *line;) {
		const char *end = strchr(line, '\n');

		if (!strncmp(line, "size ", 5))
			image->size = strtoull(line + 5, NULL, 10);
		else if (!strncmp(line, "kernel ", 7))
			rc = add_ours(image, line);
		else
			rc = SIM_INVALID_IMAGE;
		line = end ? end + 1 : line + strlen(line);
	}
	return rc;
}

/* A cubin has a section .text.NAME for each kernel. */
static int read_elf(struct sim_image *image, const char *base)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)base;
	const Elf64_Shdr *sections = (const Elf64_Shdr *)(base + header->e_shoff);
	int rc = SIM_SUCCESS;

	image->size = header->e_shoff + (uint64_t)header->e_shnum * sizeof(*sections);
	if (!header->e_shoff || header->e_shstrndx >= header->e_shnum)
		return SIM_SUCCESS;
	for (int i = 0; !rc && i < header->e_shnum; i++) {
		const char *name =
			base + sections[header->e_shstrndx].sh_offset + sections[i].sh_name;

		if (!strncmp(name, ".text.", 6))
			rc = add(image, name + 6, strlen(name + 6), SIM_WORK_NOTHING);
	}
	return rc;
}

/* Where the JIT cache has not seen this text yet, compiling it takes its time. The cache is the
 * simulated machine's: nothing is written to the user's home. */
static void compile(const char *text)
{
	char name[32];

	snprintf(name, sizeof(name), "jit-%016lx", (unsigned long)sim_image_hash(text));
	if (sim_env.is_cache_off || !sim_machine_has_cached(name))
		sim_time_wait(sim_time(SIM_STEP_jit));
}

static int read_ptx(struct sim_image *image, const char *text)
{
	const char *at = text;
	int rc = SIM_SUCCESS;

	image->size = strlen(text);
	while (!rc && (at = strstr(at, ".entry"))) {
		at += strlen(".entry");
		at += strspn(at, " \t\n");
		rc = add(image, at, strcspn(at, " \t\n(){"), SIM_WORK_NOTHING);
	}
	compile(text);
	return rc;
}

static int read_image(struct sim_image *image, const char *code)
{
	if (!strncmp(code, OURS, strlen(OURS)))
		return read_ours(image, code);
	if (!memcmp(code, ELFMAG, SELFMAG))
		return read_elf(image, code);
	if (!strncmp(code, "//", 2) || !strncmp(code + strspn(code, " \t\r\n"), ".version", 8))
		return read_ptx(image, code);
	return SIM_INVALID_IMAGE;
}

static int read_fat(struct sim_image *image, const void *data)
{
	const struct fat_header *header = data;
	const char *payload = (const char *)data + header->header_size;

	image->size = header->header_size + header->size;
	if (!strncmp(payload, OURS, strlen(OURS)))
		return read_ours(image, payload);
	image->has_any_kernel = true;
	return SIM_SUCCESS;
}

static int read_any(struct sim_image *image, const void *code)
{
	uint32_t magic;

	memcpy(&magic, code, sizeof(magic));
	if (magic == WRAPPER_MAGIC) {
		const struct wrapper *wrapper = code;

		if (!wrapper->data)
			return SIM_INVALID_IMAGE;
		code = wrapper->data;
		memcpy(&magic, code, sizeof(magic));
	}
	return magic == FAT_MAGIC ? read_fat(image, code) : read_image(image, code);
}

bool sim_image_is_broken(const struct sim_image *image)
{
	return image->is_broken;
}

int sim_image_load(const void *code, int flags, struct sim_image **ret_image)
{
	struct sim_image *image;
	double ms;
	int rc;

	if (!code)
		return SIM_INVALID_VALUE;
	sim_env_read_load();
	image = calloc(1, sizeof(*image));
	if (!image)
		return SIM_OUT_OF_MEMORY;
	rc = read_any(image, code);
	image->is_broken = rc == SIM_INVALID_IMAGE;
	if (rc && !(image->is_broken && flags & SIM_IMAGE_LIBRARY)) {
		sim_image_free(image);
		return rc;
	}
	if (flags & SIM_IMAGE_PRESERVED && !rc)
		image->preserved = code;
	ms = (double)image->size / SIM_MIB * sim_time(SIM_STEP_library_mib);
	if (sim_env.is_eager)
		ms += image->count * sim_time(SIM_STEP_kernel);
	sim_time_wait(ms);
	*ret_image = image;
	return SIM_SUCCESS;
}

int sim_image_load_file(const char *path, bool is_library, struct sim_image **ret_image)
{
	struct stat status;
	char *text = NULL;
	ssize_t got = -1;
	int fd, rc = SIM_INVALID_IMAGE;

	if (!path)
		return SIM_INVALID_VALUE;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return SIM_FILE_NOT_FOUND;
	if (!fstat(fd, &status))
		text = calloc(1, (size_t)status.st_size + sizeof(Elf64_Ehdr));
	if (text)
		got = read(fd, text, (size_t)status.st_size);
	close(fd);
	if (got > 0)
		rc = sim_image_load(text, is_library ? SIM_IMAGE_LIBRARY : 0, ret_image);
	free(text);
	return rc;
}

struct sim_image *sim_image_free(struct sim_image *image)
{
	if (image)
		free(image->kernels);
	free(image);
	return NULL;
}

static int find(const struct sim_image *image, const char *name)
{
	uint64_t hash = sim_image_hash(name);

	for (int i = 0; i < image->count; i++)
		if (image->kernels[i].hash == hash && !strcmp(image->kernels[i].name, name))
			return (int)image->kernels[i].work;
	return image->has_any_kernel ? SIM_WORK_NOTHING : -1;
}

/* What is preserved is read where it lies now: where the caller has taken it away, this crashes;
 * where something else lies there, the kernel is not found. */
int sim_image_find(const struct sim_image *image, const char *name)
{
	struct sim_image again = {0};
	int work = -1;

	if (!image->preserved || image->has_any_kernel)
		return find(image, name);
	if (!read_any(&again, image->preserved))
		work = find(&again, name);
	free(again.kernels);
	return work;
}

uint64_t sim_image_size(const struct sim_image *image)
{
	return image->size;
}

int sim_image_count(const struct sim_image *image)
{
	return image->count;
}
