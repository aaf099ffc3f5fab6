/* Single instance and socket placement, at hearthd's start and end, on its main thread. Never
 * replaces anything but a socket, never follows a symlink to the lock. */
#include "broker/instance.h"

#include "base/clock.h"
#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX_MAX 6       /* ".lock" and its NUL */
#define GIVE_UP_US 3000000 /* on a lock whose holder neither serves nor goes */
#define RETRY_NS 20000000  /* between looks at such a lock */
#define PROBE_US 100000    /* for one connection attempt */
#define SOCKET_MODE_SYSTEM 0666
#define TURN_MODE_SYSTEM 0644

static int make_system_folder(const char *socket_path)
{
	char folder[ADDRESS_MAX];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", socket_path);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return 0;
	*slash = 0;
	if (mkdir(folder, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return chmod(folder, 0755) < 0 ? -errno : 0;
}

static int open_lock(const char *path)
{
	struct stat info;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &info) < 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid()) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* Where programs say that they wait (preload/give_way.h). Without it nobody gives way. */
static void make_turn(const char *path, bool is_system)
{
	int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat info;

	if (fd < 0)
		return;
	/* Not the lock itself: whoever can read a file can lock it. */
	if (is_system && !fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_uid == geteuid())
		fchmod(fd, TURN_MODE_SYSTEM);
	close(fd);
}

static bool is_served(const char *path)
{
	int fd;

	if (socket_connect(path, clock_monotonic_us() + PROBE_US, &fd))
		return false;
	close(fd);
	return true;
}

/* The holder may be on its way out (its socket is gone by then), or about to listen. */
static int take_lock(int lock, const char *socket_path)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	uint64_t deadline_us = clock_monotonic_us() + GIVE_UP_US;

	for (;;) {
		if (!flock(lock, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		if (is_served(socket_path))
			return INSTANCE_RUNNING;
		if (clock_monotonic_us() >= deadline_us)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
}

/* Bound beside its place and then renamed into it: nobody meets a socket that is not served. */
static int place_socket(
	struct instance *instance, const char *beside, bool is_system, int *ret_listener)
{
	const char *path = instance->address.path;
	struct stat info;
	int rc, listener;

	if (!lstat(path, &info) && !S_ISSOCK(info.st_mode))
		return -EEXIST;
	if (unlink(beside) < 0 && errno != ENOENT)
		return -errno;
	rc = socket_listen(beside, &listener);
	if (rc)
		return rc;
	if (chmod(beside, is_system ? SOCKET_MODE_SYSTEM : 0600) < 0 || lstat(beside, &info) < 0 ||
		rename(beside, path) < 0) {
		rc = -errno;
		unlink(beside);
		close(listener);
		return rc;
	}
	instance->device = info.st_dev;
	instance->inode = info.st_ino;
	*ret_listener = listener;
	return 0;
}

int instance_take(const struct address *address, bool is_system, struct instance *ret_instance,
	int *ret_listener)
{
	struct instance instance = {.address = *address, .lock = -1};
	char lock_path[ADDRESS_MAX], beside[ADDRESS_MAX], turn_path[ADDRESS_MAX];
	int rc;

	if (strlen(address->path) + SUFFIX_MAX > ADDRESS_MAX)
		return -ENAMETOOLONG;
	snprintf(
		lock_path, sizeof(lock_path), "%.*s.lock", ADDRESS_MAX - SUFFIX_MAX, address->path);
	snprintf(beside, sizeof(beside), "%.*s.new", ADDRESS_MAX - SUFFIX_MAX, address->path);
	snprintf(
		turn_path, sizeof(turn_path), "%.*s.turn", ADDRESS_MAX - SUFFIX_MAX, address->path);
	if (is_system) {
		rc = make_system_folder(address->path);
		if (rc)
			return rc;
	}
	instance.lock = open_lock(lock_path);
	if (instance.lock < 0)
		return instance.lock;
	rc = take_lock(instance.lock, address->path);
	if (!rc)
		make_turn(turn_path, is_system);
	if (!rc)
		rc = place_socket(&instance, beside, is_system, ret_listener);
	if (rc) {
		close(instance.lock);
		return rc;
	}
	*ret_instance = instance;
	return 0;
}

bool instance_is_ours(const struct instance *instance)
{
	struct stat info;

	return !lstat(instance->address.path, &info) && info.st_dev == instance->device &&
	       info.st_ino == instance->inode;
}

void instance_hide(const struct instance *instance)
{
	if (instance_is_ours(instance))
		unlink(instance->address.path);
}

void instance_release(struct instance *instance)
{
	if (instance->lock >= 0)
		close(instance->lock);
	instance->lock = -1;
}
