/* Looking at calls that load images. Runs in the user's program inside such a call, before the
 * driver has seen it: what is passed may be anything, and is read only as far as the driver itself
 * must read it. */
#include "preload/image_call.h"

#include "base/status.h"
#include "driver/abi.h"
#include "driver/image.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

void image_call_begin(struct image_call *ret_call, enum image_entry entry, const void *code,
	const char *path, uint32_t jit_count, const void *options, const void *values,
	uint32_t option_count)
{
	ret_call->entry = entry;
	ret_call->code = code;
	ret_call->path = path;
	ret_call->jit_count = jit_count;
	ret_call->option_count = option_count;
	ret_call->options = options;
	ret_call->values = values;
	ret_call->is_looked_at = ret_call->is_known = false;
}

/* Byte by byte: what does not begin like it may be shorter. */
static bool begins_with(const void *code, uint32_t magic)
{
	const unsigned char *bytes = code;
	unsigned char wanted[sizeof(magic)];

	memcpy(wanted, &magic, sizeof(magic));
	for (size_t i = 0; i < sizeof(magic); i++)
		if (bytes[i] != wanted[i])
			return false;
	return true;
}

static enum image_form form_of(const void *code)
{
	uint32_t elf;

	memcpy(&elf, ELFMAG, sizeof(elf));
	if (image_is_text(code))
		return IMAGE_TEXT;
	if (begins_with(code, FATBIN_WRAPPER_MAGIC))
		return IMAGE_WRAPPED;
	if (begins_with(code, FATBIN_MAGIC))
		return IMAGE_FATBIN;
	return begins_with(code, elf) ? IMAGE_ELF : IMAGE_FORM_NONE;
}

static uint64_t fatbin_size(const void *data)
{
	struct fatbin_header header;

	memcpy(&header, data, sizeof(header));
	return header.magic == FATBIN_MAGIC && header.size <= IMAGES_SIZE_MAX
		       ? header.header_size + header.size
		       : 0;
}

void image_call_look(struct image_call *call)
{
	if (call->is_looked_at)
		return;
	call->is_looked_at = true;
	call->form = call->code ? form_of(call->code) : IMAGE_FORM_NONE;
	call->data = call->form ? call->code : NULL;
	call->size = call->offset = 0;
	call->wrapper = IMAGES_NO_OFFSET;
	call->is_in_file = call->is_compiled = false;
	if (call->form == IMAGE_WRAPPED) {
		struct fatbin_wrapper passed;

		memcpy(&passed, call->code, sizeof(passed));
		call->data = passed.version == FATBIN_WRAPPER_VERSION ? passed.data : NULL;
	}
	if (!call->data)
		return;
	if (call->form == IMAGE_WRAPPED || call->form == IMAGE_FATBIN)
		call->size = fatbin_size(call->data);
	/* The wrapper's place counts where it is in the same file. */
	if (mapped_find(call->data, call->form == IMAGE_WRAPPED ? call->code : NULL, &call->mapped))
		return;
	call->is_in_file = true;
	call->offset = call->mapped.offset;
	if (call->mapped.beside != MAPPED_NOT_BESIDE)
		call->wrapper = call->mapped.beside;
}

void image_call_measure(struct image_call *call, unsigned int sm)
{
	struct image_info info;

	if (!call->data)
		return;
	image_inspect(call->data, sm, &info);
	call->is_compiled = info.is_compiled;
	call->size = call->form == IMAGE_TEXT ? info.size + 1 : info.size;
}

void image_call_options(const struct image_call *call, struct image *ret_image)
{
	uint32_t count =
		call->option_count < IMAGES_OPTIONS_MAX ? call->option_count : IMAGES_OPTIONS_MAX;

	ret_image->flags = 0;
	if (call->jit_count)
		ret_image->flags |= IMAGE_HAS_JIT_OPTIONS;
	if (call->option_count > IMAGES_OPTIONS_MAX || (count && (!call->options || !call->values)))
		ret_image->flags |= IMAGE_HAS_MORE_OPTIONS;
	ret_image->option_count = 0;
	if (ret_image->flags & IMAGE_HAS_MORE_OPTIONS)
		return;
	for (uint32_t i = 0; i < count; i++) {
		uintptr_t value = (uintptr_t)call->values[i];

		/* A truth value: the runtime passes 1, and no driver follows that. */
		if (call->options[i] == CU_LIBRARY_BINARY_IS_PRESERVED)
			value = value != 0;
		/* What another value points to, if it does, is not known here. */
		if (value > UINT32_MAX) {
			ret_image->flags |= IMAGE_HAS_MORE_OPTIONS;
			return;
		}
		ret_image->options[i].option = (uint32_t)call->options[i];
		ret_image->options[i].value = (uint32_t)value;
	}
	ret_image->option_count = count;
}

static bool has_options(const struct image_call *call, const struct image *image)
{
	struct image passed = {0};

	image_call_options(call, &passed);
	return passed.flags == (image->flags & (IMAGE_HAS_JIT_OPTIONS | IMAGE_HAS_MORE_OPTIONS)) &&
	       passed.option_count == image->option_count &&
	       !memcmp(passed.options, image->options,
		       passed.option_count * sizeof(passed.options[0]));
}

/* A whole file, as it now lies at the path. */
static bool is_file(const struct image_call *call, const struct image_source *source)
{
	struct stat file;
	void *content = MAP_FAILED;
	bool is_same;
	int fd = open(call->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return false;
	if (!status_of_fd(fd, &file) && S_ISREG(file.st_mode) &&
		(uint64_t)file.st_size == source->size)
		content = mmap(NULL, source->size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (content == MAP_FAILED)
		return false;
	is_same = !memcmp(content, source->data, source->size);
	munmap(content, source->size);
	return is_same;
}

static bool is_same_file(const struct image_call *call, const struct image_file *file)
{
	return file->kind == IMAGE_FILE_BUILD_ID
		       ? call->mapped.id.size && !memcmp(call->mapped.id.bytes, file->identity,
							 sizeof(file->identity))
		       : !call->mapped.id.size;
}

/* What is passed may be shorter than it says, unless its headers are those of the recorded image;
 * a text is compared as far as it goes. */
static bool is_same_content(const struct image_call *call, const struct image_source *source)
{
	if (call->form == IMAGE_TEXT)
		return !strncmp(call->data, source->data, source->size);
	if (call->form == IMAGE_ELF &&
		(source->size < sizeof(Elf64_Ehdr) ||
			memcmp(call->data, source->data, sizeof(Elf64_Ehdr))))
		return false;
	return (call->form == IMAGE_ELF || call->size == source->size) &&
	       !memcmp(call->data, source->data, source->size);
}

bool image_call_is(const struct image_call *call, const struct images *list, uint32_t index,
	const struct image_source *source)
{
	const struct image *image = &list->images[index];

	if (call->entry != image->entry || !has_options(call, image))
		return false;
	if (call->entry == IMAGE_LIBRARY_FILE || call->entry == IMAGE_MODULE_FILE)
		return call->path && is_file(call, source);
	if (call->form != image->form || !call->data ||
		call->is_in_file != (image->file != IMAGES_NO_FILE))
		return false;
	if (!call->is_in_file)
		return is_same_content(call, source);
	return is_same_file(call, &list->files[image->file]) && call->offset == image->offset &&
	       call->wrapper == image->wrapper && image->size <= call->mapped.left &&
	       (!call->size || call->size == image->size) &&
	       !memcmp(call->data, source->data, image->digest_size);
}
