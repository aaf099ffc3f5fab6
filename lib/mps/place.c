/* The folders of MPS daemons. Runs in the hearth tool and in the supervisor. Follows no symlink in
 * a folder that others can write to. */
#include "mps/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGEST_NAME 40 /* of what the daemon makes in pipe/ */
#define MACHINE_MODE 0711
#define MACHINE_PARENT "/run/hearth"
#define MACHINE_PARENT_MODE 0755 /* as the machine's broker makes it */

static int join(const char *folder, const char *name, char ret_path[ADDRESS_MAX])
{
	int length = snprintf(ret_path, ADDRESS_MAX, "%s/%s", folder, name);

	return length < 0 || length >= ADDRESS_MAX ? -ENAMETOOLONG : 0;
}

int place_of(bool is_machine, struct place *ret_place)
{
	struct place place = {.is_machine = is_machine};
	char own[ADDRESS_MAX];
	int rc = 0;

	if (is_machine) {
		strcpy(place.folder, PLACE_MACHINE);
	} else {
		rc = address_own_folder(own, sizeof(own));
		if (!rc)
			rc = join(own, "mps", place.folder);
	}
	if (!rc)
		rc = join(place.folder, "pipe", place.pipe);
	if (!rc)
		rc = join(place.folder, "log", place.log);
	if (!rc && strlen(place.pipe) + 1 + LONGEST_NAME >= ADDRESS_MAX)
		rc = -ENAMETOOLONG;
	if (!rc)
		*ret_place = place;
	return rc;
}

/* Whatever the umask is, and whatever mode it had. */
static int make_folder(const char *path, mode_t mode)
{
	struct stat info;

	if (mkdir(path, mode) && errno != EEXIST)
		return -errno;
	if (lstat(path, &info))
		return -errno;
	if (!S_ISDIR(info.st_mode))
		return -ENOTDIR;
	if (info.st_uid != geteuid())
		return -EPERM;
	if ((info.st_mode & 07777) != mode && chmod(path, mode))
		return -errno;
	return 0;
}

int place_make(const struct place *place, char ret_path[ADDRESS_MAX])
{
	mode_t mode = place->is_machine ? MACHINE_MODE : 0700;
	char parent[ADDRESS_MAX];
	int rc = 0;

	if (place->is_machine)
		strcpy(parent, MACHINE_PARENT);
	else
		rc = address_own_folder(parent, sizeof(parent));
	strcpy(ret_path, parent);
	if (!rc)
		rc = make_folder(parent, place->is_machine ? MACHINE_PARENT_MODE : 0700);
	if (!rc)
		rc = make_folder(strcpy(ret_path, place->folder), mode);
	if (!rc)
		rc = make_folder(strcpy(ret_path, place->pipe), mode);
	if (!rc)
		rc = make_folder(strcpy(ret_path, place->log), 0700);
	return rc;
}

void place_path(const struct place *place, const char *name, char ret_path[ADDRESS_MAX])
{
	snprintf(ret_path, ADDRESS_MAX, "%.90s/%s", place->folder, name);
}

int place_lock(const struct place *place, int *ret_fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[ADDRESS_MAX];
	struct stat info;
	int fd, rc;

	place_path(place, "lock", path);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	rc = fcntl(fd, F_SETLK, &lock) ? errno == EACCES ? -EAGAIN : -errno : 0;
	/* One that its last holder has just taken away is nobody's. */
	if (!rc && (fstat(fd, &info) || !info.st_nlink))
		rc = -EAGAIN;
	if (rc) {
		close(fd);
		return rc;
	}
	*ret_fd = fd;
	return 0;
}

pid_t place_holder(const struct place *place)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[ADDRESS_MAX];
	pid_t holder = 0;
	struct stat info;
	int fd;

	place_path(place, "lock", path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return 0;
	/* A file that is root's or ours: anybody else's would have us signal whom it likes. */
	if (!fstat(fd, &info) && (info.st_uid == geteuid() || !info.st_uid) &&
		!fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK && lock.l_pid > 0)
		holder = lock.l_pid;
	close(fd);
	return holder;
}

int place_serving(struct place *ret_place, pid_t *ret_supervisor)
{
	struct place own, machine;
	int rc = place_of(false, &own);

	if (rc)
		return rc;
	*ret_place = own;
	*ret_supervisor = place_holder(&own);
	if (*ret_supervisor)
		return 0;
	rc = place_of(true, &machine);
	if (rc)
		return rc;
	*ret_supervisor = place_holder(&machine);
	if (!*ret_supervisor)
		return -ENOENT;
	*ret_place = machine;
	return 0;
}
