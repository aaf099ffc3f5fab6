/* `hearth doctor`: what stands between a program and Hearth. Only looks: starts no broker, opens no
 * device, runs nothing of the command. With --prove it does one thing, in processes of hearthd's.
 */
#include "base/install.h"
#include "command.h"
#include "doctor/broker_side.h"
#include "doctor/command.h"
#include "doctor/costs.h"
#include "doctor/machine.h"
#include "doctor/mps_side.h"
#include "doctor/preload.h"
#include "doctor/proof.h"
#include "doctor/surroundings.h"
#include "driver/mps_code.h"
#include "options.h"
#include "past.h"
#include "prove.h"
#include "report/warnings.h"

#include <errno.h>
#include <string.h>

/* Where libhearth.so lies in an image. */
static const char *const places[] = {"/usr/lib/hearth/libhearth.so",
	"/usr/local/lib/hearth/libhearth.so", "/usr/lib/x86_64-linux-gnu/hearth/libhearth.so",
	"/usr/local/lib/x86_64-linux-gnu/hearth/libhearth.so", "/opt/hearth/lib/libhearth.so"};
#define PLACES (sizeof(places) / sizeof(places[0]))

struct request {
	bool is_json, is_proof, is_mps;
	unsigned code; /* of MPS's; 0: none was asked about */
	const char *root;
	char **words; /* the command; empty where there is none */
};

static int parse(int argc, char **argv, struct request *ret_request)
{
	struct request request = {0};
	const struct option_row rows[] = {{.name = "json", .flag = &request.is_json},
		{.name = "root", .text = &request.root},
		{.name = "prove", .flag = &request.is_proof},
		{.name = "mps", .flag = &request.is_mps},
		{.name = "code",
			.number = &request.code,
			.least = MPS_CODE_FIRST,
			.most = MPS_CODE_LAST},
		{0}};
	int status = options_take(
		&command_doctor, rows, WORDS_MAYBE_PROGRAM, argc, argv, &request.words);

	if (status != OPTIONS_TAKEN)
		return status;
	if (request.is_proof && (request.root || *request.words))
		return command_fail(COMMAND_USAGE,
			"doctor: --prove is about this machine: '%s' is not expected",
			request.root ? "--root" : *request.words);
	request.is_mps |= request.code != 0;
	if (request.is_mps && (request.root || request.is_proof || *request.words))
		return command_fail(COMMAND_USAGE,
			"doctor: --mps is about this machine alone: '%s' is not expected",
			request.root       ? "--root"
			: request.is_proof ? "--prove"
					   : *request.words);
	*ret_request = request;
	return OPTIONS_TAKEN;
}

/* Is this run of the command? Programs are known by the base name of their script, if they are
 * one. */
static bool is_of(const struct run *run, char *const *words)
{
	for (; *words; words++) {
		const char *slash = strrchr(*words, '/');

		if (!strcmp(slash ? slash + 1 : *words, run->program))
			return true;
	}
	return false;
}

/* What the latest run shows, of the command or of any, that nothing else here would. */
static void examine_runs(const struct request *request, struct findings *findings)
{
	struct findings found = {0};
	struct profiles profiles = {0};
	struct run_log log = {0};
	struct settings settings;
	struct past past;
	size_t at;

	settings_read(&settings);
	past_load(&settings, &log, &past);
	past_load_profiles(&settings, &profiles);
	for (at = log.count; at; at--)
		if (!*request->words || is_of(&log.runs[at - 1], request->words))
			break;
	if (at)
		warnings_find_habits(&log, at - 1, &profiles, &found);
	for (size_t i = 0; i < found.count; i++) {
		findings_add(findings, found.items[i].id, found.items[i].severity, "%s: %s",
			log.runs[at - 1].program, found.items[i].text);
		findings_remedy(findings, "%s", found.items[i].remedy);
	}
	findings_done(&found);
	profiles_done(&profiles);
	run_log_done(&log);
}

static int examine(const struct request *request, struct scene *scene, struct findings *findings,
	bool *ret_is_intercepted)
{
	char library[PATH_MAX], smi[PATH_MAX];

	if (scene_is_machine(scene) && !install_find(INSTALL_PRELOAD, sizeof(library), library))
		scene->library = library;
	for (size_t i = 0; !scene_is_machine(scene) && !scene->library && i < PLACES; i++)
		if (scene_exists(scene, places[i]))
			scene->library = places[i];
	/* What another root holds is not run here. */
	if (scene_is_machine(scene) && scene_find_program(scene, "nvidia-smi", smi))
		scene->nvidia_smi = smi;
	if (request->code)
		return mps_side_explain(request->code, findings);
	machine_examine(scene, findings);
	if (request->is_mps) {
		mps_side_examine(scene, findings);
		return 0;
	}
	surroundings_examine(scene, findings);
	if (scene_is_machine(scene)) {
		proof_examine(scene, findings);
		broker_side_examine(findings);
	}
	costs_examine(scene, findings);
	if (scene_is_machine(scene))
		examine_runs(request, findings);
	if (*request->words)
		return command_examine(scene, request->words, findings, ret_is_intercepted);
	return preload_examine(scene, findings);
}

static int run(int argc, char **argv)
{
	struct findings findings = {0};
	bool is_intercepted = false;
	struct request request = {0};
	struct scene scene;
	int status = parse(argc, argv, &request), rc;

	if (status != OPTIONS_TAKEN)
		return status;
	if (request.is_proof)
		return prove_now(request.is_json);
	rc = scene_init(request.root, &scene);
	if (rc)
		return command_fail(
			COMMAND_USAGE, "doctor: --root %s: %s", request.root, strerror(-rc));
	rc = examine(&request, &scene, &findings, &is_intercepted);
	scene_done(&scene);
	if (!rc && findings.is_short)
		rc = -ENOMEM;
	if (!rc && request.is_json)
		rc = findings_print_json(&findings, *request.words, is_intercepted, stdout);
	else if (!rc)
		findings_print(&findings, stdout);
	if (*request.words)
		status = is_intercepted ? COMMAND_OK : COMMAND_FAILED;
	else
		status =
			findings_worst(&findings) == SEVERITY_PROBLEM ? COMMAND_FAILED : COMMAND_OK;
	findings_done(&findings);
	if (rc)
		return command_fail(COMMAND_FAILED, "doctor: %s", strerror(-rc));
	return fflush(stdout) ? COMMAND_FAILED : status;
}

const struct command command_doctor = {
	.name = "doctor",
	.arguments =
		"[--json] [--prove | --mps [--code N] | --root DIR] [-- PROGRAM [ARGUMENT...]]",
	.summary = "Say whether a program would be intercepted, and what is wrong",
	.help = "Looks at the driver, the device nodes, the JIT cache, the container, the broker "
		"and\n"
		"LD_PRELOAD; and follows PROGRAM through scripts and wrappers (env, timeout, "
		"sudo)\n"
		"without running it.\n"
		"\n"
		"  --json      the findings as one JSON object\n"
		"  --prove     prove now that what is done ahead can be undone with this machine's "
		"driver,\n"
		"              in processes of its own, and store that (some seconds)\n"
		"  --mps       what a program meets that comes to CUDA MPS now, why, and what "
		"mends it\n"
		"  --code N    what one of MPS's codes means, 805 to 810\n"
		"  --root DIR  look at the machine or image unpacked below DIR, not at this one\n"
		"\n"
		"The exit status is 0 where PROGRAM would be intercepted (without PROGRAM: where\n"
		"nothing is a problem; with --prove: where it is proven), else 1.\n",
	.run = run,
};
