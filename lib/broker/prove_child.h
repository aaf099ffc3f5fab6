/* The proving process: `hearthd --prove look|run DRIVER FOLDER READERS`. It alone touches the state
 * folder, which may lie on a network that hangs, and it alone starts processes that call the
 * driver. */
#pragma once

/* Its exit status. */
enum prove_status {
	PROVE_PASSED = 0, /* so it is stored, from before or from now */
	PROVE_FAILED = 1, /* likewise */
	PROVE_ERROR = 2,  /* the driver's file cannot be read, or nothing can be stored */
	PROVE_UNKNOWN =
		3, /* look: none is stored; run: the GPU is busy or away. Nothing is stored */
};

/* What it does: look at what is stored; or, whatever is, run the self-test and store its verdict,
 * and print its lines. */
#define PROVE_LOOK "look"
#define PROVE_RUN "run"

/* Whom a verdict is for. */
#define PROVE_FOR_OWNER "owner"
#define PROVE_FOR_ALL "all"

/* The four words behind --prove. Returns the exit status. */
#define PROVE_ARGUMENTS 4
int prove_child_main(char *const words[PROVE_ARGUMENTS]);
