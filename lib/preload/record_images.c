/* Recording images and kernels. Runs in the user's program inside its calls, on any thread, after
 * the driver has answered; must not call the loader while it holds the lock, nor touch the driver,
 * and does what can wait on the thread that writes (record_learn.c). */
#include "preload/record_images.h"

#include "base/log.h"
#include "preload/first_call.h"
#include "preload/observe.h"
#include "preload/recorder.h"
#include "preload/route.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* FNV-1a, 64 bits. */
#define HASH_START UINT64_C(14695981039346656037)
#define HASH_FACTOR UINT64_C(1099511628211)

enum { NOT_YET, BEGINNING, ON, OVER };

static uint32_t state = NOT_YET, is_late;
static pid_t owner;
static struct recorder *memory;
static bool has_all_kernels;

/* Which section the run belongs to shows once the program has called cuInit, which it has. */
static struct recorder *begin(void)
{
	uint8_t build_id[PROFILE_BUILD_SIZE];
	char model[PROFILE_MODEL_SIZE];
	struct recorder *fresh;

	if (!observe_driver(build_id, model))
		return NULL;
	fresh = mmap(NULL, sizeof(*fresh), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fresh == MAP_FAILED)
		return NULL;
	pthread_mutex_init(&fresh->lock, NULL);
	fresh->key = images_key(build_id, model);
	images_draft_begin(&fresh->draft);
	return fresh;
}

struct recorder *recorder(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == ON && owner == getpid() ? memory : NULL;
}

bool record_images_is_on(void)
{
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) != OVER;
}

void record_images_late(void)
{
	struct recorder *self = recorder();

	if (__atomic_exchange_n(&is_late, 1, __ATOMIC_RELAXED) || !self)
		return;
	pthread_mutex_lock(&self->lock);
	for (uint32_t i = 0; i < self->draft.image_count; i++)
		self->draft.images[i].flags |= IMAGE_IS_LATE;
	pthread_mutex_unlock(&self->lock);
	record_learn_changed();
}

bool record_images_takes_kernels(void)
{
	return record_images_is_on() && !__atomic_load_n(&has_all_kernels, __ATOMIC_RELAXED);
}

void record_images_stop(void)
{
	__atomic_store_n(&state, OVER, __ATOMIC_RELEASE);
}

struct recorder *record_images_begin(void)
{
	uint32_t not_yet = NOT_YET;

	if (!observe_is_on())
		return NULL;
	if (!__atomic_compare_exchange_n(
		    &state, &not_yet, BEGINNING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return recorder();
	owner = getpid();
	memory = begin();
	__atomic_store_n(&state, memory ? ON : OVER, __ATOMIC_RELEASE);
	return memory;
}

/* The slot of a handle, or the free one where it belongs. */
static struct recorder_slot *slot_of(struct recorder_table *table, const void *handle)
{
	uint64_t at = (uintptr_t)handle * HASH_FACTOR >> 32;

	while (table->slots[at % RECORDER_SLOTS].handle &&
		table->slots[at % RECORDER_SLOTS].handle != (uintptr_t)handle)
		at++;
	return &table->slots[at % RECORDER_SLOTS];
}

static void put(struct recorder_table *table, const void *handle, uint32_t index)
{
	struct recorder_slot *slot = slot_of(table, handle);

	if (!slot->handle) {
		/* Three quarters at most, so that a search ends soon. */
		if (table->count >= RECORDER_SLOTS / 4 * 3)
			return;
		table->count++;
		slot->handle = (uintptr_t)handle;
	}
	slot->index = index;
}

static bool find(struct recorder_table *table, const void *handle, uint32_t *ret_index)
{
	const struct recorder_slot *slot = slot_of(table, handle);

	if (!slot->handle || slot->index == UINT32_MAX)
		return false;
	*ret_index = slot->index;
	return true;
}

/* The file's index; IMAGES_NO_FILE where there is no room. `mapped` is NULL for one that was only
 * named. */
static uint32_t note_file(struct recorder *self, const char *path, const struct mapped *mapped)
{
	struct images_draft *draft = &self->draft;
	struct image_file file = {0};
	uintptr_t base = mapped ? mapped->base : 0;

	if (mapped && mapped->id.size) {
		file.kind = IMAGE_FILE_BUILD_ID;
		memcpy(file.identity, mapped->id.bytes, sizeof(file.identity));
	}
	for (uint32_t i = 0; i < draft->file_count; i++)
		if (file.kind && draft->files[i].kind == IMAGE_FILE_BUILD_ID
				? !memcmp(draft->files[i].identity, file.identity,
					  sizeof(file.identity))
				: !file.kind && self->bases[i] == base &&
					  !strcmp(draft->text + draft->files[i].path, path))
			return i;
	if (draft->file_count == IMAGES_FILES_MAX)
		return IMAGES_NO_FILE;
	file.path = images_draft_text(draft, path);
	if (!file.path)
		return IMAGES_NO_FILE;
	self->bases[draft->file_count] = base;
	draft->files[draft->file_count] = file;
	return draft->file_count++;
}

static bool is_same(
	const struct recorder *self, uint32_t index, const struct image *image, const void *data)
{
	const struct image *known = &self->draft.images[index];
	uint8_t digest[DIGEST_SIZE];

	if (known->entry != image->entry || known->file != image->file ||
		!image_has_same_options(known, image))
		return false;
	/* Of a whole file the rest is filled in later. */
	if (image->entry == IMAGE_LIBRARY_FILE || image->entry == IMAGE_MODULE_FILE)
		return true;
	if (known->form != image->form || known->size != image->size ||
		known->offset != image->offset || known->wrapper != image->wrapper)
		return false;
	if (image->file != IMAGES_NO_FILE)
		return true;
	if (image->digest_size && known->digest_size)
		return !memcmp(image->digest, known->digest, sizeof(image->digest));
	if (self->copies[index])
		return !memcmp(self->copies[index], data, image->size);
	digest_of(data, image->size, digest);
	return !memcmp(digest, known->digest, sizeof(digest));
}

/* The program may free or change its memory as soon as its call returns. */
static void *copy_content(struct recorder *self, const void *data, uint64_t size)
{
	void *copy;

	if (size > RECORDER_COPIES_MAX - self->copied)
		return NULL;
	copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
		-1, 0);
	if (copy == MAP_FAILED)
		return NULL;
	self->copied += size;
	return memcpy(copy, data, size);
}

/* What is known of the image at once. False where it cannot be recorded. */
static bool describe(struct recorder *self, const struct image_call *call, struct image *image)
{
	image_call_options(call, image);
	image->entry = call->entry;
	image->form = call->form;
	image->size = call->size;
	image->wrapper = call->wrapper;
	if (call->is_compiled)
		image->flags |= IMAGE_IS_JIT;
	/* What is to be compiled may depend on them. */
	if (image->jit_count && call->has_text)
		image_refuse(image, IMAGE_HAS_JIT_OPTIONS, image->jit_options[0].option);
	if (__atomic_load_n(&is_late, __ATOMIC_RELAXED))
		image->flags |= IMAGE_IS_LATE;
	if (call->path) {
		/* The rest when it is written: the file is the program's for now. */
		image->wrapper = IMAGES_NO_OFFSET;
		image->file = note_file(self, call->path, NULL);
		return image->file != IMAGES_NO_FILE;
	}
	if (!call->data || !call->size || call->size > IMAGES_SIZE_MAX)
		return false;
	image->file = IMAGES_NO_FILE;
	if (!call->is_in_file) {
		/* What was given from the list is known, and in the store. */
		if (call->is_known) {
			image->digest_size = (uint32_t)image->size;
			memcpy(image->digest, call->known, sizeof(image->digest));
		}
		return true;
	}
	if (call->size > call->mapped.left)
		return false;
	image->file = note_file(self, call->mapped.path, &call->mapped);
	image->offset = call->offset;
	if (image->file == IMAGES_NO_FILE)
		return false;
	if (call->mapped.id.size) {
		image->digest_size =
			(uint32_t)(call->size < IMAGES_DIGEST_PART ? call->size
								   : IMAGES_DIGEST_PART);
		digest_of(call->data, image->digest_size, image->digest);
	}
	return true;
}

/* The image's index, IMAGES_MAX where it is not recorded. */
static uint32_t note_image(
	struct recorder *self, const struct image_call *call, uint64_t took_us, int device)
{
	struct images_draft *draft = &self->draft;
	struct image image = {.device = device, .load_us = (uint32_t)took_us, .count = 1};
	char reason[IMAGE_REASON_SIZE];

	if (!describe(self, call, &image))
		return IMAGES_MAX;
	for (uint32_t i = 0; i < draft->image_count; i++)
		if (is_same(self, i, &image, call->data)) {
			draft->images[i].count++;
			return i;
		}
	if (draft->image_count == IMAGES_MAX) {
		self->is_full = true;
		return IMAGES_MAX;
	}
	if (image.file == IMAGES_NO_FILE && !image.digest_size) {
		void *copy = copy_content(self, call->data, image.size);

		if (!copy)
			return IMAGES_MAX;
		self->copies[draft->image_count] = copy;
	}
	draft->images[draft->image_count] = image;
	if (image.flags & (IMAGE_HAS_JIT_OPTIONS | IMAGE_HAS_MORE_OPTIONS))
		log_debug(
			"prefetch: image %u: %s", draft->image_count, image_reason(&image, reason));
	record_learn_changed();
	return draft->image_count++;
}

/* An absolute path, as the loader would have it. */
static const char *absolute(const char *path, char room[PATH_MAX])
{
	size_t length;

	if (path[0] == '/')
		return path;
	if (!getcwd(room, PATH_MAX))
		return NULL;
	length = strlen(room);
	if (length + 1 + strlen(path) >= PATH_MAX)
		return NULL;
	room[length] = '/';
	memcpy(room + length + 1, path, strlen(path) + 1);
	return room;
}

void record_images_load(struct image_call *call, const void *handle, uint64_t took_us)
{
	int kept = errno, device;
	char room[PATH_MAX];
	struct recorder *self = record_images_begin();
	unsigned int sm;
	uint32_t index;

	if (!self || (call->path && !(call->path = absolute(call->path, room)))) {
		errno = kept;
		return;
	}
	device = first_call_current_device();
	sm = first_call_sm(device);
	image_call_measure(call, sm);
	pthread_mutex_lock(&self->lock);
	self->sm = sm;
	index = note_image(self, call, took_us, device);
	put(&self->owners, handle, index < IMAGES_MAX ? index : UINT32_MAX);
	pthread_mutex_unlock(&self->lock);
	errno = kept;
}

static uint32_t *name_place(struct recorder *self, uint32_t image, const char *name)
{
	const struct images_draft *draft = &self->draft;
	uint64_t hash = HASH_START ^ image;

	for (const char *c = name; *c; c++)
		hash = (hash ^ (unsigned char)*c) * HASH_FACTOR;
	for (hash >>= 32;; hash++) {
		uint32_t *place = &self->names[hash % RECORDER_SLOTS];

		if (!*place ||
			(draft->kernels[*place - 1].image == image &&
				!strcmp(draft->text + draft->kernels[*place - 1].name, name)))
			return place;
	}
}

/* The kernel's index, or IMAGES_KERNELS_MAX. */
static uint32_t note_kernel(struct recorder *self, uint32_t image, const char *name)
{
	struct images_draft *draft = &self->draft;
	uint32_t *place = name_place(self, image, name);
	struct image_kernel kernel = {.image = image};

	if (*place)
		return *place - 1;
	if (draft->kernel_count == IMAGES_KERNELS_MAX ||
		draft->text_size + strlen(name) >= IMAGES_TEXT_MAX - RECORDER_PATHS_ROOM) {
		__atomic_store_n(&has_all_kernels, true, __ATOMIC_RELAXED);
		return IMAGES_KERNELS_MAX;
	}
	kernel.name = images_draft_text(draft, name);
	if (!kernel.name)
		return IMAGES_KERNELS_MAX;
	draft->kernels[draft->kernel_count] = kernel;
	*place = ++draft->kernel_count;
	record_learn_changed();
	return *place - 1;
}

static void note_function(struct recorder *self, uint32_t kernel)
{
	if (self->draft.kernels[kernel].flags & IMAGE_KERNEL_FUNCTION)
		return;
	self->draft.kernels[kernel].flags |= IMAGE_KERNEL_FUNCTION;
	record_learn_changed();
}

void record_images_kernel(
	const void *owner_handle, const void *kernel, const char *name, bool is_function)
{
	struct recorder *self = recorder();
	uint32_t image, index;
	int kept = errno;

	if (!self)
		return;
	pthread_mutex_lock(&self->lock);
	if (find(&self->owners, owner_handle, &image)) {
		index = note_kernel(self, image, name);
		if (index < IMAGES_KERNELS_MAX) {
			put(&self->kernels, kernel, index);
			if (is_function)
				note_function(self, index);
		}
	}
	pthread_mutex_unlock(&self->lock);
	errno = kept;
}

void record_images_function(const void *kernel)
{
	struct recorder *self = recorder();
	uint32_t index;
	int kept = errno;

	if (!self)
		return;
	pthread_mutex_lock(&self->lock);
	if (find(&self->kernels, kernel, &index))
		note_function(self, index);
	pthread_mutex_unlock(&self->lock);
	errno = kept;
}
