/* Collecting warnings. Runs in the hearth tool. nvidia-smi is asked once at most, and only where a
 * run has waited for a cold cuInit: it takes a second on some machines. */
#include "warn.h"

#include "doctor/machine.h"
#include "report/warnings.h"

#include <stdbool.h>

/* They are the machine's, as they are now. */
static void find_modes(struct findings *findings)
{
	char smi[PATH_MAX];
	struct scene scene;

	if (scene_init(NULL, &scene))
		return;
	if (scene_find_program(&scene, "nvidia-smi", smi))
		machine_ask_modes(smi, findings);
	scene_done(&scene);
}

/* What the machine's settings are now is said once, where it matters last. */
static bool is_last_dear(const struct run_log *log, size_t at)
{
	if (!warnings_is_init_dear(&log->runs[at]))
		return false;
	while (++at < log->count)
		if (warnings_is_init_dear(&log->runs[at]))
			return false;
	return true;
}

static void find(const struct run_log *log, size_t at, const struct profiles *profiles,
	struct findings *findings)
{
	warnings_find_habits(log, at, profiles, findings);
	warnings_find_conditions(&log->runs[at], findings);
	if (is_last_dear(log, at))
		find_modes(findings);
}

void warn_print(const struct run_log *log, size_t at, const struct profiles *profiles, FILE *to)
{
	struct findings findings = {0};

	find(log, at, profiles, &findings);
	findings_print_warnings(&findings, to);
	findings_done(&findings);
}

json_t *warn_to_json(const struct findings *findings)
{
	json_t *list = json_array();

	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];

		if (finding->severity >= SEVERITY_WARNING)
			json_array_append_new(
				list, json_pack("{s:s, s:s, s:s?}", "id", finding->id, "text",
					      finding->text, "remedy", finding->remedy));
	}
	return list;
}

void warn_add_json(
	json_t *shown, const struct run_log *log, size_t first, const struct profiles *profiles)
{
	json_t *runs = json_object_get(shown, "runs"), *run;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		struct findings findings = {0};

		find(log, first + i, profiles, &findings);
		json_object_set_new(run, "warnings", warn_to_json(&findings));
		findings_done(&findings);
	}
}
