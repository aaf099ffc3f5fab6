/* Gathering the situation. Runs in the user's program: in the constructor where a profile may ask
 * for a start at once, else on the speculative thread. Must not write, allocate or print. */
#include "preload/situation.h"

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

static struct identity identity;
static bool has_identity;
static char state_dir[PROFILE_PATH_MAX - 16], profiles[PROFILE_PATH_MAX];
static struct profile profile;
static bool has_profile;
static const struct profile_section *section;

void situation_begin(int argc, char **argv)
{
	has_identity = !identity_of_self(
		argc, (const char *const *)argv, env_get(ENV_JPY_SESSION_NAME), &identity);
	if (state_dir_path(start_settings(), state_dir, sizeof(state_dir)))
		state_dir[0] = '\0';
	else
		snprintf(profiles, sizeof(profiles), "%s/profiles", state_dir);
}

const struct identity *situation_identity(void)
{
	return has_identity ? &identity : NULL;
}

const struct profile_section *situation_section(void)
{
	return section;
}

const char *situation_profiles(void)
{
	return profiles[0] ? profiles : NULL;
}

bool situation_has_cause(void)
{
	has_profile = has_identity &&
		      ((profiles[0] && !profile_read(profiles, identity.digest, &profile, NULL)) ||
			      !profile_read(PROFILE_SYSTEM_DIR, identity.digest, &profile, NULL));
	return has_profile || start_settings()->speculate == SPECULATE_ALWAYS;
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

int situation_read(const char *driver, struct situation *ret_situation)
{
	const struct settings *settings = start_settings();
	struct situation situation = {
		.mode = settings->speculate,
		.contexts = settings->contexts,
		.give_back_us = settings->give_back_us,
		.kind = has_identity ? identity.kind : IDENTITY_EXECUTABLE,
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
	situation.is_undo_proven = state_dir[0] && verdict_read(state_dir, &id) == VERDICT_PASSED;
	/* Part of what the self-test proves. */
	situation.is_getenv_redirected = situation.is_undo_proven;
	*ret_situation = situation;
	return 0;
}
