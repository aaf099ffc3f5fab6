/* Is it proven that speculation can be undone on the machine's driver? */
#pragma once

#include "doctor/scene.h"
#include "driver/build_id.h"
#include "driver/verdict.h"
#include "report/findings.h"

#include <limits.h>

struct proof {
	char driver[PATH_MAX]; /* empty: there is none here */
	struct build_id id;
	char state_dir[PATH_MAX]; /* empty: no setting names one */
};

/* What a proof here is about, and where its verdict is stored. Of this machine only. */
void proof_subject(const struct scene *scene, struct proof *ret_proof);

/* The stored verdict as finding "speculation"; none where there is no driver. */
void proof_examine(const struct scene *scene, struct findings *findings);

/* What doctor makes of a verdict. */
void proof_judge(enum verdict verdict, const char *details, struct findings *findings);

/* The line in a verdict's details that says what went wrong, without its newline; 0 where none
 * does. */
size_t proof_culprit(const char *details, const char **ret_line);
