/* Copies of the driver's file. The main thread asks; one thread at a time copies, touches its job
 * only, and ends. */
#include "broker/driver_file.h"

#include "base/log.h"
#include "driver/build_id.h"
#include "region/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((off_t)1 << 30) /* ten times today's driver */

struct driver_job {
	pthread_t thread;
	char path[PATH_MAX];
	uint8_t build_id[BUILD_ID_MAX];
	int done; /* the eventfd */
	/* Written by the thread, is_done last, with release. */
	int rc;
	int fd;
	uint64_t size;
	bool is_done;
};

static int copy_bytes(int from, int to, off_t size)
{
	while (size > 0) {
		ssize_t sent = sendfile(to, from, NULL, (size_t)size);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return sent ? -errno : -EIO;
		size -= sent;
	}
	return 0;
}

static int copy_file(
	int from, const uint8_t build_id[BUILD_ID_MAX], int *ret_fd, uint64_t *ret_size)
{
	struct build_id found;
	struct stat info;
	int fd = -1, rc = build_id_of_file(from, &found);

	if (rc || memcmp(found.bytes, build_id, sizeof(found.bytes)))
		return -ENOENT;
	if (fstat(from, &info) < 0)
		return -errno;
	if (info.st_size > FILE_MAX_BYTES)
		return -EFBIG;
	rc = segment_create("hearth-driver", (size_t)info.st_size, &fd);
	if (rc)
		return rc;
	if (lseek(from, 0, SEEK_SET) < 0)
		rc = -errno;
	if (!rc)
		rc = copy_bytes(from, fd, info.st_size);
	if (!rc)
		rc = segment_seal_whole(fd);
	if (!rc)
		rc = segment_read_only(fd, ret_fd);
	close(fd);
	*ret_size = (uint64_t)info.st_size;
	return rc;
}

static void *work(void *data)
{
	struct driver_job *job = data;
	int from = open(job->path, O_RDONLY | O_CLOEXEC);
	int done = job->done;

	if (from < 0) {
		job->rc = -errno;
	} else {
		job->rc = copy_file(from, job->build_id, &job->fd, &job->size);
		close(from);
	}
	__atomic_store_n(&job->is_done, true, __ATOMIC_RELEASE);
	if (eventfd_write(done, 1) < 0)
		log_error("cannot say that the driver is copied: %s", strerror(errno));
	return NULL;
}

/* Only says that there is something to ask for: the loop's next tick asks. */
static void on_done(struct source *source, uint32_t events)
{
	eventfd_t value;

	eventfd_read(source->fd, &value);
}

int driver_files_open(struct driver_files *files, struct loop *loop)
{
	int rc, fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	*files = (struct driver_files){.done = {.fd = -1}};
	for (int i = 0; i < DRIVER_FILE_MAX; i++)
		files->copies[i].fd = -1;
	if (fd < 0)
		return -errno;
	files->done = (struct source){.fd = fd, .on_ready = on_done};
	rc = loop_add(loop, &files->done, EPOLLIN);
	if (rc) {
		close(fd);
		files->done.fd = -1;
	}
	return rc;
}

static struct driver_job *end_job(struct driver_job *job)
{
	if (!job)
		return NULL;
	pthread_join(job->thread, NULL);
	if (job->fd >= 0)
		close(job->fd);
	free(job);
	return NULL;
}

void driver_files_close(struct driver_files *files, struct loop *loop)
{
	if (!files->done.on_ready)
		return;
	files->job = end_job(files->job);
	for (int i = 0; i < DRIVER_FILE_MAX; i++)
		if (files->copies[i].fd >= 0)
			close(files->copies[i].fd);
	loop_remove(loop, &files->done);
}

static int start_job(
	struct driver_files *files, const char *path, const uint8_t build_id[BUILD_ID_MAX])
{
	struct driver_job *job = calloc(1, sizeof(*job));
	sigset_t all, before;
	int rc;

	if (!job)
		return -ENOMEM;
	snprintf(job->path, sizeof(job->path), "%s", path);
	memcpy(job->build_id, build_id, sizeof(job->build_id));
	job->done = files->done.fd;
	job->fd = -1;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&job->thread, NULL, work, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		free(job);
		return -rc;
	}
	files->job = job;
	return DRIVER_FILE_LATER;
}

/* Takes over what the thread has made. */
static int harvest(struct driver_files *files)
{
	struct driver_copy *place = &files->copies[files->next];
	struct driver_job *job = files->job;
	int rc;

	pthread_join(job->thread, NULL);
	rc = job->rc;
	if (!rc) {
		if (place->fd >= 0)
			close(place->fd);
		*place = (struct driver_copy){.fd = job->fd, .size = job->size};
		memcpy(place->build_id, job->build_id, sizeof(place->build_id));
		files->next = (files->next + 1) % DRIVER_FILE_MAX;
	}
	free(job);
	files->job = NULL;
	return rc;
}

static bool is_done(const struct driver_job *job)
{
	return __atomic_load_n(&job->is_done, __ATOMIC_ACQUIRE);
}

int driver_files_get(struct driver_files *files, const char *path,
	const uint8_t build_id[BUILD_ID_MAX], int *ret_fd, uint64_t *ret_size)
{
	if (files->job && is_done(files->job)) {
		bool is_ours = !memcmp(files->job->build_id, build_id, BUILD_ID_MAX);
		int rc = harvest(files);

		if (rc && is_ours)
			return rc;
	}
	for (int i = 0; i < DRIVER_FILE_MAX; i++) {
		const struct driver_copy *copy = &files->copies[i];

		if (copy->fd >= 0 && !memcmp(copy->build_id, build_id, BUILD_ID_MAX)) {
			*ret_size = copy->size;
			return segment_read_only(copy->fd, ret_fd);
		}
	}
	if (!path[0])
		return -ENOENT;
	return files->job ? DRIVER_FILE_LATER : start_job(files, path, build_id);
}
