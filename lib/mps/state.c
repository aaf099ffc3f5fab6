/* The place's JSON files. Runs in the supervisor, which writes `state`, and in the hearth tool. */
#include "mps/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGEST (64 * 1024)

const char *state_phase_name(enum state_phase phase)
{
	static const char *const names[] = {"starting", "active", "waiting", "stopping"};

	return names[phase];
}

static int write_file(const char *path, const json_t *json)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644), rc = 0;

	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0644) || json_dumpfd(json, fd, JSON_COMPACT))
		rc = errno ? -errno : -EIO;
	close(fd);
	return rc;
}

int state_write(const struct place *place, const char *name, json_t *json)
{
	char path[ADDRESS_MAX], beside[ADDRESS_MAX + 16];
	int rc = json ? 0 : -ENOMEM;

	place_path(place, name, path);
	snprintf(beside, sizeof(beside), "%s.%d", path, (int)getpid());
	unlink(beside);
	if (!rc)
		rc = write_file(beside, json);
	if (!rc && rename(beside, path))
		rc = -errno;
	if (rc)
		unlink(beside);
	json_decref(json);
	return rc;
}

json_t *state_read(const struct place *place, const char *name)
{
	char path[ADDRESS_MAX];
	struct stat info;
	json_t *json = NULL;
	int fd;

	place_path(place, name, path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &info) && S_ISREG(info.st_mode) && info.st_size <= LARGEST &&
		(info.st_uid == geteuid() || !info.st_uid))
		json = json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
	close(fd);
	if (json && !json_is_object(json)) {
		json_decref(json);
		json = NULL;
	}
	return json;
}
