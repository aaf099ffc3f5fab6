/* Looking at MPS for `hearth doctor --mps`. Runs in the hearth tool; changes nothing. */
#include "doctor/mps_side.h"

#include "driver/mps_code.h"
#include "mps/control.h"
#include "mps/judge.h"
#include "mps/place.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_FOLDER "/tmp/nvidia-mps" /* the MPS manual's */

static void examine_program(struct findings *findings)
{
	struct control control;

	if (!control_find(DEFAULT_FOLDER, NULL, &control)) {
		findings_add(findings, "mps-program", SEVERITY_OK, "%s", control.program);
		return;
	}
	findings_add(findings, "mps-program", SEVERITY_WARNING,
		"nvidia-cuda-mps-control is neither in PATH nor in /usr/local/nvidia/bin: no "
		"daemon can be started or asked here");
	findings_remedy(findings, "it comes with NVIDIA's driver (Debian: nvidia-cuda-mps)");
}

static enum severity severity_of(const struct judgement *judgement)
{
	if (judge_is_bad(judgement))
		return SEVERITY_PROBLEM;
	if (judgement->state == JUDGE_NO_SERVER || judgement->state == JUDGE_UNKNOWN)
		return SEVERITY_NOTE;
	return judgement->state == JUDGE_FINE ? SEVERITY_OK : SEVERITY_WARNING;
}

static void examine_folder(const struct scene *scene, struct findings *findings)
{
	const char *folder = scene->env[ENV_CUDA_MPS_PIPE_DIRECTORY];
	struct judgement judgement;
	struct place place;
	pid_t supervisor;

	if (!folder && scene_exists(scene, DEFAULT_FOLDER "/control"))
		folder = DEFAULT_FOLDER;
	if (!folder && !place_serving(&place, &supervisor)) {
		folder = place.pipe;
		findings_add(findings, "mps-setting", SEVERITY_NOTE,
			"CUDA_MPS_PIPE_DIRECTORY is unset: only `hearth run --mps` makes clients "
			"of "
			"Hearth's daemon");
		findings_remedy(findings, "export CUDA_MPS_PIPE_DIRECTORY=%s", folder);
	}
	if (!folder) {
		findings_add(findings, "mps", SEVERITY_NOTE,
			"no daemon of Hearth's runs, and CUDA_MPS_PIPE_DIRECTORY is unset: "
			"programs "
			"run without MPS");
		findings_remedy(findings, "hearth mps start, then hearth run --mps -- PROGRAM");
		return;
	}
	judge_folder(folder, true, &judgement);
	findings_add(findings, "mps", severity_of(&judgement), "%s", judgement.text);
	if (*judgement.remedy)
		findings_remedy(findings, "%s", judgement.remedy);
}

/* "0=2G,1=512M", devices by number or UUID. */
static bool is_memory_list(const char *text)
{
	while (*text) {
		size_t device = strcspn(text, "=,"), value;

		if (!device || text[device] != '=')
			return false;
		text += device + 1;
		value = strspn(text, "0123456789");
		text += value;
		if (!value || !strchr("GMgm", *text) || !*text)
			return false;
		text += 1 + (text[1] == 'B' || text[1] == 'b');
		if (*text == ',' && text[1])
			text++;
		else if (*text)
			return false;
	}
	return true;
}

static void examine_limits(const struct scene *scene, struct findings *findings)
{
	const char *memory = scene->env[ENV_CUDA_MPS_PINNED_DEVICE_MEM_LIMIT];
	const char *threads = scene->env[ENV_CUDA_MPS_ACTIVE_THREAD_PERCENTAGE];
	double percent = threads ? strtod(threads, NULL) : 100;

	if (memory && (!*memory || !is_memory_list(memory))) {
		findings_add(findings, "mps-memory", SEVERITY_WARNING,
			"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=%s is no list such as 0=2G,1=512M: it "
			"limits nothing, and lifts the server's own limit",
			memory);
		findings_remedy(findings, "hearth run --mps --mem 2GiB -- PROGRAM sets it right");
	}
	if (percent <= 0 || percent > 100) {
		findings_add(findings, "mps-threads", SEVERITY_WARNING,
			"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%s is not from 1 to 100: it limits "
			"nothing",
			threads);
		findings_remedy(
			findings, "hearth run --mps --threads 50%% -- PROGRAM sets it right");
	}
}

static void examine_devices(const struct scene *scene, struct findings *findings)
{
	const char *visible = scene->env[ENV_CUDA_VISIBLE_DEVICES];

	if (!visible || !isdigit((unsigned char)*visible))
		return;
	findings_add(findings, "mps-devices", SEVERITY_NOTE,
		"CUDA_VISIBLE_DEVICES=%s: a daemon that was started with a list of its own numbers "
		"the GPUs anew",
		visible);
	findings_remedy(findings,
		"name them by UUID (nvidia-smi -L); hearth run --mps does, and Hearth's daemons "
		"have no list");
}

void mps_side_examine(const struct scene *scene, struct findings *findings)
{
	examine_program(findings);
	examine_folder(scene, findings);
	examine_limits(scene, findings);
	examine_devices(scene, findings);
}

int mps_side_explain(unsigned code, struct findings *findings)
{
	const struct mps_code *found = mps_code_find((int)code);

	if (!found)
		return -EINVAL;
	findings_add(findings, "mps-code", SEVERITY_NOTE, "%u: %s", code, found->text);
	findings_remedy(findings, "%s", found->remedy);
	return 0;
}
