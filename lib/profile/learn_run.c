/* A run's observation comes into the program's file. Called once per run: in the user's process
 * when its first context is there or when it ends, or by the broker for one that was killed. Takes
 * no lock, so nothing that is killed or hangs can hold up another program. */
#include "profile/learn.h"

#include <errno.h>
#include <sys/mman.h>

#define TRIES 8 /* then the last writer wins */

static int try_once(const char *folder, const char *system_folder, const struct identity *identity,
	const struct observation *observation, struct profile_extension *extension, bool is_last)
{
	uint8_t seen[DIGEST_SIZE];
	struct profile profile;
	int rc = profile_seen(folder, identity->digest, seen);

	if (rc)
		return rc;
	if (profile_find(folder, system_folder, identity->digest, &profile, extension)) {
		/* Whatever is wrong with it, a new one takes its place. */
		profile_init(&profile, identity);
		extension->size = 0;
	}
	learn(&profile, observation);
	return profile_replace(folder, &profile, extension, is_last ? NULL : seen);
}

int learn_run(const char *folder, const char *system_folder, const struct identity *identity,
	const struct observation *observation)
{
	struct profile_extension extension = {.room = PROFILE_EXTENSION_MAX};
	int rc = PROFILE_CHANGED;

	extension.data = mmap(NULL, extension.room, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (extension.data == MAP_FAILED)
		return -errno;
	for (int i = 1; i <= TRIES && rc == PROFILE_CHANGED; i++)
		rc = try_once(folder, system_folder, identity, observation, &extension, i == TRIES);
	munmap(extension.data, extension.room);
	return rc;
}
