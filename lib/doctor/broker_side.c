/* Asking the broker how it is. Runs in the hearth tool; waits as long as ask_broker does, no
 * longer. */
#include "doctor/broker_side.h"

#include "base/env.h"
#include "doctor/costs.h"
#include "launch/ask.h"
#include "launch/keeper_status.h"

#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void broker_side_judge(
	const char *address, const char *status, const char *driver, struct findings *findings)
{
	json_t *json = json_loads(status, 0, NULL);
	const json_t *keeper = json_object_get(json, "keeper");
	const char *state = json_string_value(json_object_get(keeper, "state"));
	const char *reason = json_string_value(json_object_get(keeper, "reason"));
	struct keeper_status known;

	keeper_status_read(json, &known);
	if (!state) {
		findings_add(findings, "broker", SEVERITY_WARNING,
			"%s answers, but not with a status that this version understands", address);
		findings_remedy(findings, "hearth stop, and start it again");
	} else if (!strcmp(state, "failed")) {
		findings_add(findings, "broker", SEVERITY_WARNING,
			"%s: its keeper failed (%s, CUDA error %lld) and is tried again later",
			address, reason ? reason : "no reason given",
			json_integer_value(json_object_get(keeper, "rc")));
		findings_remedy(findings, "hearth status");
	} else if (!strcmp(state, "released")) {
		findings_add(findings, "broker", SEVERITY_NOTE, "%s: its keeper has let the GPU go",
			address);
		findings_remedy(findings, "hearth release --resume");
	} else if (keeper_status_is_for_other(&known, driver)) {
		findings_add(findings, "broker", SEVERITY_WARNING,
			"%s keeps %s warm, not HEARTH_DRIVER=%s", address,
			keeper_status_driver(&known), driver);
		findings_remedy(findings, "hearth stop, and start it again");
	} else {
		findings_add(findings, "broker", SEVERITY_OK, "%s, keeper %s%s%s", address, state,
			reason ? ": " : "", reason ? reason : "");
	}
	json_decref(json);
}

/* No broker answers: could one of the user's own start? */
/* The folder of HEARTH_SOCKET: the broker makes none. False where none can start there. */
static bool examine_named_place(const char *socket, struct findings *findings)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%s", socket);
	if (!access(dirname(folder), W_OK | X_OK))
		return true;
	findings_add(findings, "broker", SEVERITY_WARNING,
		"none runs, and none can at HEARTH_SOCKET=%s: %s: %s", socket, folder,
		strerror(errno));
	findings_remedy(findings, "mkdir -m 700 that folder, or unset HEARTH_SOCKET");
	return false;
}

static void examine_place(const struct settings *settings, struct findings *findings)
{
	char folder[ADDRESS_MAX];
	int rc;

	if (settings->socket && !examine_named_place(settings->socket, findings))
		return;
	rc = settings->socket ? 0 : address_own_folder(folder, sizeof(folder));
	if (!rc && !settings->socket)
		rc = address_check_folder(folder);
	if (rc == -EPERM || rc == -ENOTDIR) {
		findings_add(findings, "broker", SEVERITY_WARNING,
			"none runs, and none of your own can: %s isn't a folder that is yours "
			"alone",
			folder);
		findings_remedy(findings,
			"set XDG_RUNTIME_DIR to a folder of yours with mode 0700, or remove that "
			"one");
		return;
	}
	findings_add(findings, "broker", SEVERITY_NOTE,
		"none runs; `hearth run` starts one, a bare LD_PRELOAD doesn't");
}

void broker_side_examine(struct findings *findings)
{
	struct wire_message question;
	struct ask_reply reply = {0};
	struct settings settings;
	const char *wrong = settings_read(&settings);
	int rc;

	if (wrong) {
		findings_add(findings, "settings", SEVERITY_WARNING,
			"%s=%s isn't understood: its default counts", wrong, env_get_named(wrong));
		findings_remedy(findings, "hearth help env");
	}
	if (settings.socket && address_setting_fault(settings.socket)) {
		findings_add(findings, "broker", SEVERITY_WARNING, "HEARTH_SOCKET=%s is %s",
			settings.socket, address_setting_fault(settings.socket));
		findings_remedy(findings, "use a shorter absolute path");
		return;
	}
	wire_init(&question, WIRE_STATUS);
	rc = ask_broker(&settings, &question, &reply);
	if (!rc && reply.text) {
		broker_side_judge(reply.address.path, reply.text, settings.driver, findings);
		costs_judge_devices(reply.text, env_get(ENV_CUDA_VISIBLE_DEVICES), findings);
	} else if (rc == -ENOENT) {
		examine_place(&settings, findings);
	} else {
		findings_add(findings, "broker", SEVERITY_WARNING, "%s: %s", reply.address.path,
			rc == -EPERM ? "belongs to another user, so it is not used"
			: rc > 0     ? strerror(reply.code)
				     : strerror(-rc));
		findings_remedy(findings, "hearth stop, or set HEARTH_SOCKET");
	}
	free(reply.text);
}
