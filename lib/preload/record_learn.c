/* Writing what was recorded into the profile. Runs on a thread of our own that lives while learning
 * goes on, and at the program's end on its last thread; never in a call of the program. It waits
 * until nothing new was loaded for a second, so that it does its work beside no load, and a program
 * that is killed later has been learned. */
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "preload/image_file.h"
#include "preload/image_source.h"
#include "preload/observe.h"
#include "preload/record_images.h"
#include "preload/recorder.h"
#include "preload/situation.h"
#include "preload/spare.h"
#include "preload/speculation.h"
#include "preload/threads.h"
#include "preload/touched.h"
#include "profile/image_store.h"
#include "profile/images_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define QUIET_US 1000000       /* without anything new: then it is written */
#define UNSAVED_MAX_US 5000000 /* at most so long after the first that is not written */
#define OVER_US 30000000       /* without anything new: learning is over */
#define WRITES_MAX 6           /* of one run, besides that at its end */
#define FORK_LIMIT_US 500000   /* how long a fork waits for a write to end; it takes some ms */
#define EXIT_LIMIT_US 2000000  /* and an exit */

static uint32_t changes, saved; /* how often something new came; up to where it is written */
static uint32_t is_saving, is_running, is_idle, is_ending;
static uint64_t changed_us, unsaved_us; /* monotonic: the latest change, the first not written */
static bool is_new_run = true;          /* belongs to who is saving */
static struct image_bases bases;

/* Identities, sizes and digests that need the file. False where it is gone, or unsuitable. */
static bool complete_from_file(
	const char *path, unsigned int sm, struct image_file *file, struct image *image)
{
	struct image_file found;
	bool is_whole = image->entry == IMAGE_LIBRARY_FILE || image->entry == IMAGE_MODULE_FILE;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	void *content = NULL;

	if (fd < 0)
		return false;
	if (!image_file_identify(fd, &found)) {
		if (is_whole)
			image->size = found.size;
		/* What is mapped without a build-id must be known by all of its bytes. */
		if (image->size <= IMAGES_DIGEST_MAX)
			content = image_file_copy(fd, image->offset, image->size);
	}
	close(fd);
	if (!content)
		return false;
	found.path = file->path;
	*file = found;
	image->digest_size = (uint32_t)image->size;
	digest_of(content, image->size, image->digest);
	if (is_whole)
		image_file_look(content, sm, image);
	munmap(content, image->size);
	return true;
}

/* The content of an image on the heap gets its digest, and its place in the store. */
static void complete_from_copy(const char *store, const void *copy, struct image *image)
{
	int error;

	digest_of(copy, image->size, image->digest);
	image->digest_size = (uint32_t)image->size;
	if (!image_is_replayable(image))
		return;
	error = image_store_put(store, image->digest, copy, image->size);
	if (error)
		log_info("%s: %s", store, strerror(-error));
}

/* Completes what can be had without the lock held, one image at a time. */
static void complete(struct recorder *self, const char *store)
{
	struct images_draft *draft = &self->draft;

	for (uint32_t i = 0;; i++) {
		struct image image;
		struct image_file file = {0};
		bool is_complete = true;
		unsigned int sm;
		void *copy;

		pthread_mutex_lock(&self->lock);
		if (i >= draft->image_count) {
			pthread_mutex_unlock(&self->lock);
			return;
		}
		image = draft->images[i];
		copy = self->copies[i];
		sm = self->sm;
		if (image.file != IMAGES_NO_FILE)
			file = draft->files[image.file];
		pthread_mutex_unlock(&self->lock);
		if (image.digest_size) {
			/* Given out of the store. */
			if (image.file == IMAGES_NO_FILE && is_new_run)
				image_store_mark(store, image.digest);
			continue;
		}
		if (copy)
			complete_from_copy(store, copy, &image);
		else
			/* Texts are only ever added. */
			is_complete =
				complete_from_file(draft->text + file.path, sm, &file, &image);
		if (!is_complete)
			continue;
		pthread_mutex_lock(&self->lock);
		draft->images[i].form = image.form;
		draft->images[i].flags = image.flags;
		draft->images[i].size = image.size;
		draft->images[i].digest_size = image.digest_size;
		memcpy(draft->images[i].digest, image.digest, sizeof(image.digest));
		if (image.file != IMAGES_NO_FILE)
			draft->files[image.file] = file;
		self->copies[i] = NULL;
		if (copy)
			self->copied -= image.size;
		pthread_mutex_unlock(&self->lock);
		if (copy)
			munmap(copy, image.size);
	}
}

static void add_places(struct images_draft *draft, struct image_file *file)
{
	char path[PATH_MAX];

	if (image_file_relative(bases.executable, draft->text + file->path, path, sizeof(path)))
		file->from_executable = images_draft_text(draft, path);
	if (image_file_relative(bases.started, draft->text + file->path, path, sizeof(path)))
		file->from_started = images_draft_text(draft, path);
}

/* A copy of the draft without what is not complete. */
static void copy_draft(struct recorder *self, struct images_draft *ret_draft)
{
	uint32_t places[IMAGES_MAX];
	const struct images_draft *draft = &self->draft;

	pthread_mutex_lock(&self->lock);
	images_draft_begin(ret_draft);
	ret_draft->text_size = draft->text_size;
	memcpy(ret_draft->text, draft->text, draft->text_size);
	ret_draft->file_count = draft->file_count;
	memcpy(ret_draft->files, draft->files, draft->file_count * sizeof(draft->files[0]));
	for (uint32_t i = 0; i < draft->image_count; i++) {
		places[i] = IMAGES_MAX;
		if (!draft->images[i].digest_size)
			continue;
		places[i] = ret_draft->image_count;
		ret_draft->images[ret_draft->image_count++] = draft->images[i];
	}
	for (uint32_t i = 0; i < draft->kernel_count; i++) {
		struct image_kernel kernel = draft->kernels[i];

		kernel.image = places[kernel.image];
		if (kernel.image < IMAGES_MAX)
			ret_draft->kernels[ret_draft->kernel_count++] = kernel;
	}
	pthread_mutex_unlock(&self->lock);
	for (uint32_t i = 0; i < ret_draft->file_count; i++)
		/* Of one that could not be read nothing is kept. */
		if (ret_draft->files[i].kind)
			add_places(ret_draft, &ret_draft->files[i]);
		else
			ret_draft->files[i].kind = IMAGE_FILE_PLAIN;
}

static void learn(struct recorder *self, const char *profiles, const struct identity *identity)
{
	struct profile profile;
	struct images_draft *draft = mmap(NULL, sizeof(*draft), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char store[PROFILE_PATH_MAX];
	int rc;

	if (draft == MAP_FAILED)
		return;
	/* A program without one is not learned: nothing is written into its store, either. */
	if (!profile_find(profiles, PROFILE_SYSTEM_DIR, identity->digest, &profile, NULL) &&
		!image_store_folder(profiles, store)) {
		complete(self, store);
		copy_draft(self, draft);
		rc = images_learn(
			profiles, PROFILE_SYSTEM_DIR, identity, self->key, draft, is_new_run);
		if (rc < 0)
			log_info("images in %s: %s", profiles, strerror(-rc));
		log_debug("images: %u in %u files, %u kernels: %d", draft->image_count,
			draft->file_count, draft->kernel_count, rc);
		is_new_run = is_new_run && rc;
	}
	munmap(draft, sizeof(*draft));
}

/* False where it is being done already. */
static bool save(void)
{
	const struct identity *identity = situation_identity();
	const char *profiles = situation_profiles();
	struct recorder *self = recorder();
	uint32_t no = 0, seen = speculation_read(&changes);

	if (!__atomic_compare_exchange_n(
		    &is_saving, &no, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return false;
	__atomic_store_n(&unsaved_us, 0, __ATOMIC_SEQ_CST);
	if (self && identity && profiles && spare_is_learning())
		learn(self, profiles, identity);
	speculation_write(&saved, seen);
	speculation_write(&is_saving, 0);
	return true;
}

/* Waits until nothing new has come for a while; how long that may take is limited. New things wake
 * nobody: they come in hundreds. */
static void wait_for_quiet(void)
{
	while (!speculation_read(&is_ending)) {
		uint64_t now_us = clock_monotonic_us();
		uint64_t quiet_us = __atomic_load_n(&changed_us, __ATOMIC_SEQ_CST) + QUIET_US;
		uint64_t limit_us = __atomic_load_n(&unsaved_us, __ATOMIC_SEQ_CST) + UNSAVED_MAX_US;
		uint64_t end_us = quiet_us < limit_us ? quiet_us : limit_us;

		if (now_us >= end_us)
			return;
		speculation_wait(&is_ending, 0, end_us - now_us);
	}
}

/* False where nothing new comes. */
static bool wait_for_change(void)
{
	speculation_write(&is_idle, 1);
	if (speculation_read(&changes) == speculation_read(&saved))
		speculation_wait(&is_idle, 1, OVER_US);
	speculation_write(&is_idle, 0);
	return speculation_read(&changes) != speculation_read(&saved) &&
	       !speculation_read(&is_ending);
}

/* Nothing more fits into the list. */
static bool is_full(void)
{
	struct recorder *self = recorder();
	bool is = true;

	if (self) {
		pthread_mutex_lock(&self->lock);
		is = self->is_full;
		pthread_mutex_unlock(&self->lock);
	}
	return is;
}

static void *run(void *unused)
{
	for (int i = 0; i < WRITES_MAX; i++) {
		wait_for_quiet();
		if (speculation_read(&is_ending))
			return NULL;
		save();
		touched_learn();
		if (is_full() || !wait_for_change())
			break;
	}
	record_images_stop();
	log_debug("images: learning is over");
	return NULL;
}

static void before_fork(void)
{
	if (speculation_read(&is_saving))
		speculation_wait(&is_saving, 1, FORK_LIMIT_US);
}

void record_learn_changed(void)
{
	uint64_t now_us = clock_monotonic_us(), none = 0;
	uint32_t no = 0;

	__atomic_store_n(&changed_us, now_us, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(
		&unsaved_us, &none, now_us, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&changes, 1, __ATOMIC_SEQ_CST);
	speculation_change(&is_idle, 1, 0);
	if (!__atomic_compare_exchange_n(
		    &is_running, &no, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return;
	image_bases_find(situation_started(), &bases);
	threads_at_fork(before_fork, NULL, NULL);
	/* Without one the end of the program writes. */
	threads_start(run, NULL);
}

void record_learn_end(void)
{
	uint32_t count = speculation_read(&changes);

	speculation_write(&is_ending, 1);
	/* A run with a context that loaded nothing tells that, too. */
	if (!count && (!observe_has_context() || !record_images_begin()))
		return;
	if ((!count || speculation_read(&saved) != count) && !save()) {
		speculation_wait(&is_saving, 1, EXIT_LIMIT_US);
		if (speculation_read(&saved) != count)
			save();
	}
	record_images_stop();
}
