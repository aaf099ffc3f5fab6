/* A program made of a number: random=SEED,LENGTH does that many steps of driver_steps which load,
 * use and unload images, capture, and end and change contexts. The same number gives the same steps
 * everywhere. */
#include "driver_steps.h"

#include <string.h>

#define STEP_MAX 64

static uint64_t state;

/* SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static uint64_t next(void)
{
	uint64_t mixed = state += UINT64_C(0x9e3779b97f4a7c15);

	mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
	return mixed ^ mixed >> 31;
}

static int below(int limit)
{
	return limit > 0 ? (int)(next() % (uint64_t)limit) : 0;
}

/* One of the steps, the likelier ones named more than once. */
static void choose(char ret_step[STEP_MAX], char ret_value[STEP_MAX])
{
	static const char *const loads[] = {"lib", "lib", "lib", "lib", "heaplib", "keptlib", "mod",
		"modfat", "modex", "heapmod"};
	static const char *const uses[] = {"launch", "launch", "func", "twice", "capture"};
	static const char *const others[] = {"reset", "release", "retain", "state", "create",
		"destroy", "stack", "wrong", "work"};
	int dice = below(20);

	snprintf(ret_value, STEP_MAX, "%d", below(steps_slot_count() + 1));
	if (dice < 8) {
		strcpy(ret_step, loads[below(sizeof(loads) / sizeof(*loads))]);
		snprintf(ret_value, STEP_MAX, "%d", below(steps_image_count()));
	} else if (dice < 14) {
		strcpy(ret_step, uses[below(sizeof(uses) / sizeof(*uses))]);
	} else if (dice < 17) {
		strcpy(ret_step, "unload");
	} else {
		strcpy(ret_step, others[below(sizeof(others) / sizeof(*others))]);
		strcpy(ret_value, "0");
	}
}

int steps_random(const char *step, const char *value)
{
	const char *comma = strchr(value, ',');

	if (strcmp(step, "random"))
		return 0;
	state = strtoull(value, NULL, 10);
	for (int left = comma ? atoi(comma + 1) : 20; left; left--) {
		char random_step[STEP_MAX], random_value[STEP_MAX];

		choose(random_step, random_value);
		if (!steps_driver(random_step, random_value))
			steps_images(random_step, random_value);
		/* What a handle of theirs would lead to is chance. */
		if (!strcmp(random_step, "reset") || !strcmp(random_step, "release") ||
			!strcmp(random_step, "destroy"))
			steps_forget_modules();
	}
	return 1;
}
