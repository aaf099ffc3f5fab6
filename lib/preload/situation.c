/* Gathering the situation. Runs in the user's program: in the constructor where a profile may ask
 * for a start at once, else on the speculative thread. Must not write, allocate or print. */
#include "preload/situation.h"

#include "base/at_start.h"
#include "base/env.h"
#include "base/state_dir.h"
#include "driver/build_id.h"
#include "driver/verdict.h"
#include "preload/start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where MPS clients look for its daemon, if no variable says otherwise (man
 * nvidia-cuda-mps-control). */
#define MPS_PIPE "/tmp/nvidia-mps/control"

/* In the state folder. */
#define FOLDER "/profiles"

static struct identity identity;
AT_START_DATA static enum {
	IDENTITY_UNKNOWN,
	IDENTITY_COMPUTING,
	IDENTITY_KNOWN,
	IDENTITY_NONE
} identity_state;
AT_START_DATA static int argument_count;
AT_START_DATA static const char *const *arguments;
static char profiles[PROFILE_PATH_MAX];
static struct profile profile;
static bool has_profile;
static const struct profile_section *section;

void situation_begin(int argc, char **argv)
{
	argument_count = argc;
	arguments = (const char *const *)argv;
	if (state_dir_path(start_settings(), profiles, sizeof(profiles) - sizeof(FOLDER)))
		profiles[0] = '\0';
	else
		memcpy(profiles + strlen(profiles), FOLDER, sizeof(FOLDER));
}

/* Of threads that come at once one computes it; the others do without. */
const struct identity *situation_identity(void)
{
	int unknown = IDENTITY_UNKNOWN;

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

const char *situation_profiles(void)
{
	return profiles[0] ? profiles : NULL;
}

/* Where nobody has a profile, no program pays for asking who it is. The first one to leave a
 * profile is asked when it does; its working folder is then what it has made of it. */
static bool may_have_profile(void)
{
	return (profiles[0] && !access(profiles, F_OK)) || !access(PROFILE_SYSTEM_DIR, F_OK);
}

bool situation_has_cause(void)
{
	bool is_always = start_settings()->speculate == SPECULATE_ALWAYS;
	const struct identity *self = is_always || may_have_profile() ? situation_identity() : NULL;

	has_profile =
		self && ((profiles[0] && !profile_read(profiles, self->digest, &profile, NULL)) ||
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
	char state_dir[PROFILE_PATH_MAX];

	return !state_dir_path(start_settings(), state_dir, sizeof(state_dir)) &&
	       verdict_read(state_dir, driver) == VERDICT_PASSED;
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
	situation.is_tool =
		env_get(ENV_CUDA_INJECTION64_PATH) || env_get(ENV_NVTX_INJECTION64_PATH);
	situation.is_mps = env_get(ENV_CUDA_MPS_PIPE_DIRECTORY) || !access(MPS_PIPE, F_OK);
	situation.is_undo_proven = is_undo_proven(&id);
	/* Part of what the self-test proves. */
	situation.is_getenv_redirected = situation.is_undo_proven;
	*ret_situation = situation;
	return 0;
}
