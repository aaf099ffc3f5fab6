/* The verdict about a command. Runs in the hearth tool. */
#include "doctor/command.h"

#include "doctor/chain.h"
#include "doctor/machine.h"
#include "doctor/preload.h"
#include "doctor/program.h"
#include "launch/preload_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Linux stops at 5 nested scripts; wrappers of wrappers seldom reach this either. */
#define MAX_STEPS 32

static enum chain_step walk(struct chain *chain)
{
	enum chain_step step = CHAIN_ON;

	for (int i = 0; step == CHAIN_ON && i < MAX_STEPS; i++)
		step = chain_step(chain);
	if (step == CHAIN_ON)
		findings_add(chain->findings, "too-deep", SEVERITY_PROBLEM,
			"more than %d scripts and wrappers lead to each other, the last is %s",
			MAX_STEPS, chain->path);
	return step;
}

/* Whether libhearth.so is in the program at the end, and first to answer. */
static bool judge_preload(struct chain *chain)
{
	const struct scene *scene = &chain->scene;
	const char *list = scene->env[ENV_LD_PRELOAD];
	char *system_list = preload_system_list(scene);
	enum preload_state state =
		preload_judge(scene, list, scene->env[ENV_LD_LIBRARY_PATH], chain->findings);

	if (state == PRELOAD_NONE && system_list)
		state = preload_judge(scene, system_list, NULL, chain->findings);
	free(system_list);
	if (state == PRELOAD_NONE && chain->lost_id) {
		findings_add(chain->findings, chain->lost_id, SEVERITY_PROBLEM, "%s",
			chain->lost_text ? chain->lost_text : "");
		findings_remedy(chain->findings, "%s", chain->lost_remedy);
	} else if (state == PRELOAD_NONE) {
		findings_add(chain->findings, "preload", SEVERITY_PROBLEM,
			"libhearth.so is not found beside this program");
		findings_remedy(chain->findings, "install it again");
	}
	return state == PRELOAD_FIRST;
}

/* Whether libhearth.so would stay, once it is loaded. */
static bool judge_stay(struct chain *chain)
{
	const struct scene *scene = &chain->scene;
	const char *off = scene->env[ENV_HEARTH];

	if (off && !strcmp(off, "0")) {
		findings_add(chain->findings, "off", SEVERITY_PROBLEM,
			"HEARTH=0: libhearth.so steps aside");
		findings_remedy(chain->findings, "unset HEARTH");
		return false;
	}
	if (machine_find_driver(scene, NULL) == MACHINE_DRIVER)
		return true;
	/* Said above, unless it is the command that changes the environment. */
	if (!findings_get(chain->findings, "no-gpu") && !findings_get(chain->findings, "driver"))
		findings_add(chain->findings, "no-gpu", SEVERITY_PROBLEM,
			"no NVIDIA driver is found in the command's environment: libhearth.so "
			"steps "
			"aside");
	return false;
}

int command_examine(const struct scene *scene, char *const *words, struct findings *findings,
	bool *ret_is_intercepted)
{
	struct chain chain;
	enum chain_step step;
	bool is_intercepted = false;
	int rc = chain_init(scene, words, findings, &chain);

	if (!rc) {
		if (!preload_list_has(scene->env[ENV_LD_PRELOAD], "/libhearth.so")) {
			chain_add_library(&chain);
			findings_add(findings, "how", SEVERITY_NOTE,
				"LD_PRELOAD doesn't hold libhearth.so here: this is about "
				"`hearth run %s`",
				words[0]);
		}
		step = walk(&chain);
		if (step == CHAIN_END || step == CHAIN_INHERIT) {
			/* All three, so that every reason is said at once. */
			is_intercepted = step == CHAIN_INHERIT ||
					 program_judge(&chain.scene, chain.path, findings);
			is_intercepted &= judge_preload(&chain);
			is_intercepted &= judge_stay(&chain);
		}
		rc = chain.is_short ? -ENOMEM : 0;
	}
	chain_done(&chain);
	if (rc)
		return rc;
	if (is_intercepted)
		findings_add(findings, "command", SEVERITY_OK, "%s would be intercepted", words[0]);
	else
		findings_add(findings, "command", SEVERITY_PROBLEM, "%s would not be intercepted",
			words[0]);
	*ret_is_intercepted = is_intercepted;
	return 0;
}
