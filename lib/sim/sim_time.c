/* What steps cost, and waiting. Runs on the thread that makes the call that costs time. */
#include "sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
	const char *name;
	double ms;
} steps[SIM_STEPS] = {
#define STEP(name, ms, help) {#name, ms},
#include "sim_steps.def"
#undef STEP
};

/* The value that SIMCUDA_TIME gives the step, or -1. */
static double changed(const char *name)
{
	const char *text = sim_setting(SIM_SET_TIME);
	size_t length = strlen(name);

	while (text) {
		if (!strncmp(text, name, length) && text[length] == '=')
			return strtod(text + length + 1, NULL);
		text = strchr(text, ',');
		if (text)
			text++;
	}
	return -1;
}

double sim_time(enum sim_step step)
{
	const char *speed = sim_setting(SIM_SET_SPEED);
	double ms = changed(steps[step].name);

	return (ms < 0 ? steps[step].ms : ms) * (speed ? strtod(speed, NULL) : 1);
}

void sim_time_wait(double ms)
{
	if (ms > 0)
		sim_wait_until(sim_time_now_us() + (uint64_t)(ms * 1000));
}

uint64_t sim_time_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

void sim_wait_until(uint64_t until_us)
{
	struct timespec until = {.tv_sec = (time_t)(until_us / 1000000),
		.tv_nsec = (long)(until_us % 1000000) * 1000};

	if (until_us <= sim_time_now_us())
		return;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}
