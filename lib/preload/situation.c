/* Gathering the situation. Runs in the user's program: in the constructor for the few programs that
 * speculation starts with, else at the first lookup of cuInit. Must not allocate or print. */
#include "preload/situation.h"

#include "base/at_start.h"
#include "base/env.h"
#include "base/log.h"
#include "base/no_mps.h"
#include "base/state_dir.h"
#include "driver/build_id.h"
#include "driver/verdict.h"
#include "preload/spare.h"
#include "preload/start.h"
#include "profile/starts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where MPS clients look for its daemon, if no variable says otherwise (man
 * nvidia-cuda-mps-control). */
#define MPS_PIPE "/tmp/nvidia-mps/control"

/* In the state folder. */
#define FOLDER "/profiles"

AT_START_DATA static struct identity identity;
AT_START_DATA static enum {
	IDENTITY_UNKNOWN,
	IDENTITY_COMPUTING,
	IDENTITY_KNOWN,
	IDENTITY_NONE
} identity_state;
AT_START_DATA static int argument_count;
AT_START_DATA static const char *const *arguments;
static char state_dir[PROFILE_PATH_MAX - sizeof(FOLDER)], profiles[PROFILE_PATH_MAX];
static struct profile profile;
AT_START_DATA static bool has_profile;
static const struct profile_section *section;
AT_START_DATA static uint32_t reasons; /* for which the executable is listed */

bool situation_begin(int argc, char **argv)
{
	argument_count = argc;
	arguments = (const char *const *)argv;
	if (state_dir_path(start_settings(), state_dir, sizeof(state_dir)))
		state_dir[0] = '\0';
	reasons = state_dir[0] ? starts_of_self(state_dir) : 0;
	return start_settings()->speculate == SPECULATE_ALWAYS || spare_is_one() ||
	       reasons & STARTS_SPECULATION;
}

void situation_note_start(bool is_listed)
{
	int error = starts_note_self(state_dir, STARTS_SPECULATION, is_listed);

	if (error)
		log_info("%s/starts: %s", state_dir, strerror(-error));
}

bool situation_has_files(void)
{
	return reasons & STARTS_FILES;
}

void situation_note_files(void)
{
	int error = starts_note_self(state_dir, STARTS_FILES, true);

	if (error)
		log_info("%s/starts: %s", state_dir, strerror(-error));
}

/* Of threads that come at once one computes it; the others do without. */
const struct identity *situation_identity(void)
{
	int unknown = IDENTITY_UNKNOWN;

	if (spare_is_one())
		return spare_identity();
	if (__atomic_compare_exchange_n((int *)&identity_state, &unknown, IDENTITY_COMPUTING, false,
		    __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
		unknown = identity_of_self(argument_count, arguments, env_get(ENV_JPY_SESSION_NAME),
				  &identity)
				  ? IDENTITY_NONE
				  : IDENTITY_KNOWN;
		__atomic_store_n((int *)&identity_state, unknown, __ATOMIC_RELEASE);
	}
	return unknown == IDENTITY_KNOWN ? &identity : NULL;
}

const struct profile_section *situation_section(void)
{
	return section;
}

const char *situation_started(void)
{
	return argument_count > 0 ? arguments[0] : NULL;
}

const char *situation_profiles(void)
{
	size_t length = strlen(state_dir);

	if (!length)
		return NULL;
	if (!profiles[0]) {
		memcpy(profiles + 1, state_dir + 1, length - 1);
		memcpy(profiles + length, FOLDER, sizeof(FOLDER));
		/* Of threads that come at once each writes the same; this makes it whole. */
		__atomic_store_n(&profiles[0], state_dir[0], __ATOMIC_RELEASE);
	}
	return profiles;
}

bool situation_has_cause(void)
{
	bool is_always = start_settings()->speculate == SPECULATE_ALWAYS;
	const struct identity *self = situation_identity();
	const char *folder = situation_profiles();

	has_profile =
		self && ((folder && !profile_read(folder, self->digest, &profile, NULL)) ||
				!profile_read(PROFILE_SYSTEM_DIR, self->digest, &profile, NULL));
	return has_profile || is_always;
}

static bool read_build_id(const char *driver, struct build_id *ret_id)
{
	int fd = open(driver, O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return false;
	error = build_id_of_file(fd, ret_id);
	close(fd);
	return !error;
}

/* The process named by HEARTH_SPECULATE; under a bare variable (an image) the first of its session
 * or container. */
static bool is_chosen(void)
{
	int chosen = start_settings()->speculate_pid, self = getpid();

	return chosen ? chosen == self : self == 1 || getsid(0) == self;
}

static bool is_undo_proven(const struct build_id *driver)
{
	return verdict_find(state_dir, driver, NULL) == VERDICT_PASSED;
}

/* Whether the driver may find a daemon, or may be meant to. */
static bool is_mps(void)
{
	const char *folder = env_get(ENV_CUDA_MPS_PIPE_DIRECTORY);

	return folder ? strcmp(folder, NO_MPS_FOLDER) != 0 : !access(MPS_PIPE, F_OK);
}

int situation_read(const char *driver, struct situation *ret_situation)
{
	const struct settings *settings = start_settings();
	const struct identity *self = situation_identity();
	struct situation situation = {
		.mode = settings->speculate,
		.contexts = settings->contexts,
		.give_back_us = settings->give_back_us,
		.kind = self ? self->kind : IDENTITY_EXECUTABLE,
	};
	struct build_id id;

	if (!read_build_id(driver, &id))
		return -ENOENT;
	if (has_profile)
		section = situation.section = profile_section(&profile, id.bytes, NULL);
	situation.is_chosen = situation.mode == SPECULATE_ALWAYS && is_chosen();
	situation.is_eager = situation.is_chosen && settings->speculate_pid;
	situation.is_spare = spare_is_one();
	situation.has_gpu = spare_gpu(&situation.gpu);
	if (situation.is_spare)
		situation.is_chosen = situation.is_eager = situation.has_gpu;
	if (spare_is_off())
		situation.mode = SPECULATE_OFF;
	situation.is_tool =
		env_get(ENV_CUDA_INJECTION64_PATH) || env_get(ENV_NVTX_INJECTION64_PATH);
	situation.is_mps = is_mps();
	situation.is_undo_proven = is_undo_proven(&id);
	/* Part of what the self-test proves. */
	situation.is_getenv_redirected = situation.is_undo_proven;
	*ret_situation = situation;
	return 0;
}
