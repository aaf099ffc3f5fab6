/* Copies of the driver in one process. Runs in the user's process: in copy_open* on a thread that
 * may take the loader's lock; copy_retire also in a fork child, so it allocates nothing. Must never
 * leave a descriptor of its own behind. */
#include "driver/copy.h"

#include "base/own_write.h"
#include "base/status.h"
#include "driver/loader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Of <linux/memfd.h>, which old headers lack: close on exec; may be executed. */
static const unsigned int memfd_flags[] = {0x0001U | 0x0010U, 0x0001U};

/* Folders for a nameless file, where memfds do not serve. */
static const char *const folders[] = {"/dev/shm", "/tmp", "/var/tmp"};

/* What the driver's thread is given to notice that its socket was shut down: 10 ms, where 2 are
 * enough on an idle machine; and how long the socket's name may then stay taken: 400 ms. */
#define NOTICE_NS 10000000
#define FREE_STEP_NS 200000
#define FREE_STEPS 2000

/* Descriptors that no driver has. */
#define HIGH_NUMBER 512

static const char socket_prefix[] = "cuda-uvmfd-";

/* How many copies this process has opened: the loader compares names before inodes, and a
 * descriptor's number comes again, so each copy's path carries one slash more. */
static atomic_uint copies;

int copy_open(const char *path, struct driver_copy *ret_copy)
{
	void *handle = loader_open(path, RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;

	if (!handle)
		return -ELIBACC;
	if (loader_info(handle, RTLD_DI_LINKMAP, &map)) {
		loader_close(handle);
		return -ELIBACC;
	}
	*ret_copy = (struct driver_copy){.handle = handle, .map = map};
	return 0;
}

static ssize_t send_some(int from, int to, off_t *done, size_t size)
{
	struct own_write guard;
	ssize_t sent;

	own_write_begin(&guard);
	sent = sendfile(to, from, done, size);
	own_write_end(&guard, sent < 0);
	return sent;
}

static int send_all(int from, int to, off_t size)
{
	for (off_t done = 0; done < size;) {
		ssize_t sent = send_some(from, to, &done, (size_t)(size - done));

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return sent ? -errno : -EIO;
	}
	return 0;
}

/* Opens an empty file of the given kind: the memfds first, then the folders. -1 where that kind
 * does not exist here. */
static int open_kind(size_t kind)
{
	if (kind < sizeof(memfd_flags) / sizeof(*memfd_flags))
		return (int)syscall(SYS_memfd_create, "hearth-driver", memfd_flags[kind]);
	kind -= sizeof(memfd_flags) / sizeof(*memfd_flags);
	return open(folders[kind], O_TMPFILE | O_RDWR | O_CLOEXEC, 0700);
}

int copy_open_fresh(const char *path, struct driver_copy *ret_copy)
{
	size_t kinds =
		sizeof(memfd_flags) / sizeof(*memfd_flags) + sizeof(folders) / sizeof(*folders);
	int source = open(path, O_RDONLY | O_CLOEXEC), error = -ENOEXEC;
	struct stat status;

	if (source < 0)
		return -errno;
	if (status_of_fd(source, &status)) {
		error = -errno;
		kinds = 0;
	}
	for (size_t kind = 0; kind < kinds; kind++) {
		char name[128] = "/proc/self/fd";
		size_t length = strlen(name), slashes;
		int copy = open_kind(kind);

		if (copy < 0)
			continue;
		error = send_all(source, copy, status.st_size);
		slashes = 1 + atomic_fetch_add(&copies, 1) % 64;
		memset(name + length, '/', slashes);
		snprintf(name + length + slashes, sizeof(name) - length - slashes, "%d", copy);
		if (!error)
			error = copy_open(name, ret_copy);
		close(copy);
		if (!error)
			break;
	}
	close(source);
	return error;
}

struct socket_name {
	struct sockaddr_un address;
	socklen_t length;
};

static bool is_driver_socket(int fd, struct socket_name *ret_name)
{
	struct socket_name name = {.length = sizeof(name.address)};

	if (getsockname(fd, (struct sockaddr *)&name.address, &name.length) ||
		name.address.sun_family != AF_UNIX ||
		name.length <= offsetof(struct sockaddr_un, sun_path) + sizeof(socket_prefix) ||
		name.address.sun_path[0] ||
		memcmp(name.address.sun_path + 1, socket_prefix, sizeof(socket_prefix) - 1))
		return false;
	*ret_name = name;
	return true;
}

static bool is_free(const struct socket_name *name)
{
	int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int outcome = bind(probe, (const struct sockaddr *)&name->address, name->length);

	close(probe);
	return !outcome;
}

static bool becomes_free(const struct socket_name *name)
{
	const struct timespec step = {.tv_nsec = FREE_STEP_NS};

	for (int i = 0; i < FREE_STEPS; i++) {
		if (is_free(name))
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

/* The driver's thread polls the socket. Shut down, it wakes that thread, which looks at it and
 * polls on; the pause lets it do so while the number still is its own socket. Then the number
 * becomes an eventfd that has nothing to say from the moment on when the name is free. Until then
 * it speaks: poll holds on to a file until it returns, and a thread that runs only now, after the
 * pause, looks at the number again and would wait on with the old file in hand, deaf to the new
 * one. */
static int retire_descriptor(int fd, const struct socket_name *name)
{
	const struct timespec pause = {.tv_nsec = NOTICE_NS};
	int event = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), outcome = 1;
	eventfd_t value;

	if (event < 0)
		return -errno;
	shutdown(fd, SHUT_RDWR);
	nanosleep(&pause, NULL);
	if (dup3(event, fd, O_CLOEXEC) < 0)
		outcome = -errno;
	else if (!becomes_free(name))
		outcome = -EBUSY;
	eventfd_read(event, &value);
	close(event);
	return outcome;
}

/* One record of getdents64, as the kernel lays it out (man 2 getdents). */
struct directory_record {
	uint64_t inode;
	int64_t offset;
	unsigned short length;
	unsigned char type;
	char name[];
};

int copy_retire(void)
{
	int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), freed = 0;
	_Alignas(struct directory_record) char buffer[4096];
	long length;

	if (folder < 0)
		return -errno;
	while ((length = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0) {
		for (long at = 0; at < length;) {
			struct directory_record *record = (struct directory_record *)(buffer + at);
			struct socket_name name;
			int fd = 0, outcome;

			at += record->length;
			for (const char *c = record->name; *c >= '0' && *c <= '9'; c++)
				fd = fd * 10 + (*c - '0');
			if (record->name[0] == '.' || fd == folder || !is_driver_socket(fd, &name))
				continue;
			outcome = retire_descriptor(fd, &name);
			if (outcome < 0) {
				close(folder);
				return outcome;
			}
			freed += outcome;
		}
	}
	close(folder);
	return freed;
}

/* A thread that polls holds on to a socket whose descriptor is gone. A connection makes it look at
 * the number again, which must not be the connection's own. */
int copy_wake(void)
{
	struct socket_name name = {.address = {.sun_family = AF_UNIX}};
	char *text = name.address.sun_path + 1;
	struct stat space;
	int probe, high, length;

	if (status_of_path("/proc/self/ns/pid", &space))
		return -errno;
	length = snprintf(text, sizeof(name.address.sun_path) - 1, "%s%llu-%d", socket_prefix,
		(unsigned long long)space.st_ino, (int)getpid());
	name.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	if (is_free(&name))
		return 0;
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return -errno;
	high = (int)syscall(SYS_fcntl, probe, F_DUPFD_CLOEXEC, HIGH_NUMBER);
	close(probe);
	if (high < 0)
		return -errno;
	connect(high, (const struct sockaddr *)&name.address, name.length);
	close(high);
	return becomes_free(&name) ? 1 : -EBUSY;
}
