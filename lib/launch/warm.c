/* Waiting for a keeper that is warm: asks the broker again and again. Runs in the tools. */
#include "launch/warm.h"

#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define POLL_MS 20
#define MOMENT_US 200000
#define NO_DEVICE 100 /* CUDA_ERROR_NO_DEVICE */

/* Will this keeper not become warm by being waited for? */
static bool is_hopeless(const struct keeper_status *status)
{
	return !strcmp(status->state, "off") ||
	       (!strcmp(status->state, "failed") && status->rc == NO_DEVICE);
}

/* A broker that hangs holds us no longer than we were told, and a moment. */
static uint64_t ask_limit_us(unsigned seconds, uint64_t deadline_us)
{
	uint64_t now_us = clock_monotonic_us();
	uint64_t left_us = deadline_us > now_us ? deadline_us - now_us : 0;

	if (!seconds || left_us > ASK_LIMIT_US)
		return ASK_LIMIT_US;
	return left_us > MOMENT_US ? left_us : MOMENT_US;
}

int warm_wait(const struct settings *settings, unsigned seconds, bool (*is_enough)(void),
	struct keeper_status *ret_status, struct ask_reply *ret_reply, int *ret_rc)
{
	const struct timespec pause = {.tv_nsec = POLL_MS * 1000000};
	uint64_t deadline_us = clock_monotonic_us() + (uint64_t)seconds * 1000000;

	for (;;) {
		struct keeper_status status = {0};
		json_t *json;

		*ret_rc = keeper_status_ask_within(
			settings, ask_limit_us(seconds, deadline_us), ret_reply, &json);
		if (!*ret_rc) {
			keeper_status_read(json, &status);
			json_decref(json);
		}
		*ret_status = status;
		if (!strcmp(status.state, "warm"))
			return 0;
		if (!*ret_rc && is_hopeless(&status))
			return WARM_NEVER;
		if (clock_monotonic_us() >= deadline_us || (is_enough && is_enough()))
			return WARM_TIMEOUT;
		nanosleep(&pause, NULL);
	}
}

void warm_explain(const struct keeper_status *status, char ret_text[WARM_TEXT_SIZE])
{
	bool has_failed = !strcmp(status->state, "failed");
	bool is_released = !strcmp(status->state, "released"); /* its reason says by what */
	int length = snprintf(ret_text, WARM_TEXT_SIZE, "the keeper %s%s", has_failed ? "" : "is ",
		status->state);

	if (*status->reason)
		length += snprintf(ret_text + length, WARM_TEXT_SIZE - (size_t)length, "%s %s",
			is_released ? "" : ":", status->reason);
	if (status->rc)
		snprintf(ret_text + length, WARM_TEXT_SIZE - (size_t)length, " (CUDA error %d)",
			status->rc);
}
