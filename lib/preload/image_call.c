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
	const char *path, uint32_t jit_count, const void *jit_options, const void *jit_values,
	const void *options, const void *values, uint32_t option_count)
{
	ret_call->entry = entry;
	ret_call->code = code;
	ret_call->path = path;
	ret_call->jit_count = jit_count;
	ret_call->jit_options = jit_options;
	ret_call->jit_values = jit_values;
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
	call->is_in_file = call->is_compiled = call->has_text = false;
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
	call->has_text = info.has_ptx;
	call->size = call->form == IMAGE_TEXT ? info.size + 1 : info.size;
}

void image_refuse(struct image *image, uint32_t flag, uint32_t option)
{
	image->flags = (image->flags & ~IMAGE_HAS_NO_VALUES) | flag;
	image->refused = option;
	image->option_count = image->jit_count = 0;
}

/* The values are in the pointers' place. */
static void note_jit_options(const struct image_call *call, struct image *image)
{
	if (call->jit_count > IMAGES_JIT_OPTIONS_MAX || !call->jit_options) {
		image_refuse(image, IMAGE_HAS_JIT_OPTIONS, IMAGES_NO_OPTION);
		return;
	}
	for (uint32_t i = 0; i < call->jit_count; i++) {
		uint32_t option = (uint32_t)call->jit_options[i];

		if (!image_jit_option_is_plain(option) || !call->jit_values ||
			(uintptr_t)call->jit_values[i] > UINT32_MAX) {
			image_refuse(image, IMAGE_HAS_JIT_OPTIONS, option);
			return;
		}
		image->jit_options[i].option = option;
		image->jit_options[i].value = (uint32_t)(uintptr_t)call->jit_values[i];
	}
	image->jit_count = call->jit_count;
}

static void note_options(const struct image_call *call, struct image *image)
{
	if (call->option_count > IMAGES_OPTIONS_MAX || !call->options) {
		image_refuse(image, IMAGE_HAS_MORE_OPTIONS, IMAGES_NO_OPTION);
		return;
	}
	if (!call->values)
		image->flags |= IMAGE_HAS_NO_VALUES;
	for (uint32_t i = 0; i < call->option_count; i++) {
		bool is_preserved = call->options[i] == CU_LIBRARY_BINARY_IS_PRESERVED;
		uintptr_t value = call->values ? (uintptr_t)call->values[i] : 0;

		/* A truth value: the runtime passes 1, and no driver follows that. */
		if (is_preserved)
			value = value != 0;
		/* What another value points to, if it does, is not known here. */
		if (value > UINT32_MAX || (!call->values && !is_preserved)) {
			image_refuse(image, IMAGE_HAS_MORE_OPTIONS, (uint32_t)call->options[i]);
			return;
		}
		image->options[i].option = (uint32_t)call->options[i];
		image->options[i].value = (uint32_t)value;
	}
	image->option_count = call->option_count;
}

void image_call_options(const struct image_call *call, struct image *ret_image)
{
	ret_image->flags = 0;
	ret_image->refused = IMAGES_NO_OPTION;
	ret_image->option_count = ret_image->jit_count = 0;
	if (call->jit_count)
		note_jit_options(call, ret_image);
	if (call->option_count && !ret_image->flags)
		note_options(call, ret_image);
}

static bool has_options(const struct image_call *call, const struct image *image)
{
	struct image passed = {0};

	image_call_options(call, &passed);
	return image_has_same_options(&passed, image);
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
