/* What goes over a spare's socket, one fixed packet a time, between `hearth run --spare` and the
 * process that holds a spare (hold.c). Both are the same user's, and check it. */
#pragma once

#include <stdint.h>

#define SPARE_MAGIC 0x52505348u /* "HSPR" */
#define SPARE_VERSION 4u
#define SPARE_FDS 4 /* that one packet brings */

enum spare_what {
	SPARE_ADOPT = 1,  /* client: with the text and the folder; `value` descriptors in all */
	SPARE_MORE,       /* holder: go on, with its pty's two ends; client: the next descriptors */
	SPARE_START,      /* holder: it would run; nothing has happened yet */
	SPARE_GO,         /* client: run it; from here on it is run here or nowhere. With the user's
			     terminal where the pty stands for it, and as FOREGROUND if `value` */
	SPARE_NO,         /* holder: not this one */
	SPARE_SIGNAL,     /* client: number `value`, for the program */
	SPARE_STOPPED,    /* holder: by signal `value` */
	SPARE_ENDED,      /* holder: `value` as waitpid has it */
	SPARE_STATUS,     /* client; answered by the same with `value`, `age_s` and `text` */
	SPARE_STOP,       /* client; answered by the end of the connection */
	SPARE_SIGNAL_ALL, /* client: number `value`, for the program's process group */
	SPARE_FOREGROUND, /* client: the pty is the program's now, the user's terminal is raw, and
			     was as `text` has it: a struct termios */
};

enum spare_state { SPARE_LOADING = 0, SPARE_READY };

#define SPARE_TEXT 512

struct spare_message {
	uint32_t magic, version;
	uint32_t what; /* enum spare_what */
	int32_t value;
	uint32_t pid; /* of the python, in SPARE_STATUS */
	uint32_t age_s;
	int32_t device;        /* with a context made ahead, in SPARE_STATUS; -1: none */
	uint32_t host_mib;     /* that the python has for itself */
	uint32_t is_auto;      /* it is kept unasked */
	char text[SPARE_TEXT]; /* the python and what it imported; NUL-terminated */
};

_Static_assert(sizeof(struct spare_message) == 36 + SPARE_TEXT, "no padding");
