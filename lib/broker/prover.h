/* The proof that speculation can be undone on the machine's driver: once per driver build, by a
 * child process, when nobody is there whom it could slow down. This is the supervisor's side;
 * prove_child.h is the child's.
 *
 *   IDLE --(the keeper is warm)--> LOOKING --(a verdict is stored)--> DONE
 *                                     |
 *                                     v        (no client for so long)
 *                                  WAITING ------------------------------> PROVING --> DONE
 *                                     ^---- five minutes, if it could not be run ----'
 *
 * Another driver file begins anew at IDLE. DONE is for this broker's life, whatever came out. */
#pragma once

#include "broker/prove_child.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct keeper;

struct prover_options {
	bool is_wanted;
	bool is_for_all;    /* the machine's broker: every user reads its verdict */
	const char *folder; /* the state folder; outlives the prover */
	uint64_t idle_us;   /* without a client, before it starts; 0: only looks */
	bool keeps_all;     /* power-managed GPUs too, as the keeper */
};

enum prover_step { PROVER_IDLE, PROVER_LOOKING, PROVER_WAITING, PROVER_PROVING, PROVER_DONE };

struct prover {
	struct prover_options options;
	enum prover_step step;
	enum prove_status status; /* of what was found out last */
	pid_t pid;                /* and process group; 0 = no child, all reaped */
	int exit_status;          /* of the child itself; what it started may still be there */
	bool is_cancelled;
	bool is_spent;        /* the proof came to an end: not again in this life */
	uint64_t deadline_us; /* the child must end by then */
	uint64_t next_us;     /* not before */
	uint64_t looked_us;   /* at what is stored */
	bool is_asked_to_look;
	uint64_t due_us; /* when prover_tick has something to do that nothing reports; 0 = none */
	struct stat driver; /* the file that this is about */
};

void prover_open(struct prover *prover, const struct prover_options *options);

/* Kills what runs and waits for it. */
void prover_close(struct prover *prover);

/* Ends what runs, without an outcome; it is all gone when prover->pid is 0. */
void prover_cancel(struct prover *prover);

/* To be called on SIGCHLD. */
void prover_reap(struct prover *prover);

/* Does what is due, and sets due_us; `quiet_since_us` is when the last client left, 0 while there
 * is one. */
void prover_tick(struct prover *prover, const struct keeper *keeper, uint64_t quiet_since_us,
	uint64_t now_us);

/* Looks at the stored verdict again, soon: somebody may have proved by hand. */
void prover_look_again(struct prover *prover);

/* "off", "not proven", "proving", "passed" or "failed". */
const char *prover_state_name(const struct prover *prover);
