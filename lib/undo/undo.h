/* Can speculation be undone on this driver build? The undo rests on the inside of one build, so it
 * is proved once per build-id, in throw-away children, before anything is speculated with it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Each is one throw-away process; DESIGN: lib/README.md, "The law". */
enum undo_scenario {
	UNDO_PRISTINE, /* a fresh copy answers as uninitialised while the quiet one is ready */
	UNDO_FORK,     /* a fork child of a process that speculated computes with a fresh copy */
	UNDO_SQUASH,   /* the quiet copy is given up, a fresh one computes in the same process */
	UNDO_CHANGED,  /* likewise, and sees an environment that was changed in between */
	UNDO_SCENARIOS
};

enum undo_result {
	UNDO_PASSED = 0,
	UNDO_FAILED,  /* an outcome was not as it must be: `step` and `rc` say which */
	UNDO_DIED,    /* the child was killed by the signal in `rc` */
	UNDO_HUNG,    /* and was killed after UNDO_LIMIT_US */
	UNDO_NOT_RUN, /* nothing was shown: the driver has no device, or no memory, or is not up */
};

#define UNDO_LIMIT_US 20000000

struct undo_verdict {
	struct {
		enum undo_result result;
		int rc;           /* the CUresult, errno or signal behind a failure */
		char step[32];    /* what was being done, NUL-terminated */
		uint64_t took_us; /* the whole scenario */
	} scenario[UNDO_SCENARIOS];
};

/* Runs all scenarios on the driver at that absolute path, one child after the other. The caller
 * must not have called into a driver, and should have one thread; if it dies, they die. Returns 0
 * where every scenario has passed; UNDO_DISPROVED where one was seen to go wrong (the verdict says
 * which); UNDO_UNPROVED where none has, but not all could be run, which says nothing about the
 * build; or a negative errno. */
#define UNDO_DISPROVED 1
#define UNDO_UNPROVED 2
int undo_test(const char *driver_path, struct undo_verdict *ret_verdict);

/* One line a scenario, for people: "fork: passed with 0 at \"cuMemFree\", 497.0 ms". */
#define UNDO_TEXT_MAX 512
void undo_format(const struct undo_verdict *verdict, char ret_text[UNDO_TEXT_MAX]);
