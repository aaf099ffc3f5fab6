/* Orders to the broker. */
#include "tell.h"

#include "base/env.h"
#include "command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tell_failure(int rc, const struct ask_reply *reply)
{
	const char *path = *reply->address.path ? reply->address.path : ADDRESS_SYSTEM;

	if (rc == ASK_REFUSED)
		return command_fail(COMMAND_FAILED, "the broker at %s refused: %s", path,
			strerror(reply->code));
	if (rc == ASK_NO_ADDRESS)
		return command_fail(COMMAND_FAILED, "HEARTH_SOCKET=%s is %s",
			env_get(ENV_HEARTH_SOCKET),
			address_setting_fault(env_get(ENV_HEARTH_SOCKET)));
	if (rc == -ENOENT)
		return command_fail(COMMAND_FAILED, "no broker runs (looked for it at %s)", path);
	if (rc == -EPERM)
		return command_fail(COMMAND_FAILED,
			"the broker at %s is neither yours nor root's: not asked", path);
	return command_fail(
		COMMAND_FAILED, "the broker at %s does not answer: %s", path, strerror(-rc));
}

int tell_broker(const struct wire_message *message)
{
	struct settings settings;
	struct ask_reply reply;
	int rc;

	settings_read(&settings);
	rc = ask_broker(&settings, message, &reply);
	free(reply.text);
	return rc ? tell_failure(rc, &reply) : COMMAND_OK;
}

int tell_keeper(const char *before, const struct keeper_status *status)
{
	char error[32] = "";

	if (status->rc)
		snprintf(error, sizeof(error), " (CUDA error %d)", status->rc);
	return command_fail(COMMAND_FAILED, "%s %s: %s%s", before, status->state,
		*status->reason ? status->reason : "no reason given", error);
}
