/* Comparing runs of one program with and without Hearth: columns of figures, medians, notes. Times
 * are microseconds. */
#pragma once

#include "report/run.h"

#include <jansson.h>
#include <stdio.h>

#define COMPARE_MAX_ROUNDS 100
#define COMPARE_MAX_DEVICES 64
#define COMPARE_MAX_NOTES 8

enum compare_arm { COMPARE_NATIVE, COMPARE_HEARTH, COMPARE_ARMS };

/* What one run is reduced to. A context per device: figures of devices are never added up, since
 * they may have been waited for at the same time. */
enum compare_column {
	COMPARE_INIT,
	COMPARE_CONTEXT,
	COMPARE_REST = COMPARE_CONTEXT + COMPARE_MAX_DEVICES,
	COMPARE_WAITED,
	COMPARE_WHOLE,
	COMPARE_COLUMNS
};

struct compare_sample {
	uint64_t us[COMPARE_COLUMNS]; /* RUN_UNKNOWN where the run had no such call */
};

struct comparison {
	const char *program;
	bool is_simulated;
	unsigned rounds[COMPARE_ARMS];
	struct compare_sample samples[COMPARE_ARMS][COMPARE_MAX_ROUNDS];
	char notes[COMPARE_MAX_NOTES][256];
	unsigned note_count;
};

/* Adds one run of the program: what its processes logged, and the whole program's time by its
 * parent's clock. Of several processes that used CUDA the one that waited longest counts, and a
 * note says so. Returns 0, or COMPARE_NO_CUDA where none did. At most COMPARE_MAX_ROUNDS per arm.
 */
#define COMPARE_NO_CUDA 1
int compare_add(struct comparison *comparison, enum compare_arm arm, const struct run_log *log,
	uint64_t whole_us);

/* Adds a note unless it is there already. */
__attribute__((format(printf, 2, 3))) void compare_note(
	struct comparison *comparison, const char *format, ...);

/* Adds the notes that follow from the figures themselves. */
void compare_judge(struct comparison *comparison);

void compare_print(const struct comparison *comparison, FILE *to);
json_t *compare_json(const struct comparison *comparison);
