/* What a program meets that comes to a pipe folder now: whether it becomes a client of MPS, goes on
 * without, waits, or fails; why; and what mends it. Only looks and asks, within 1.5 s. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum judge_state {
	JUDGE_FINE,
	JUDGE_NO_FOLDER,
	JUDGE_RELATIVE,
	JUDGE_TOO_LONG,
	JUDGE_OUT_OF_REACH,
	JUDGE_EMPTY,
	JUDGE_STALE,
	JUDGE_HANGS,      /* the daemon accepts and does not answer */
	JUDGE_STRANGER,   /* a user's daemon, and not ours */
	JUDGE_OTHER_USER, /* root's, whose server is another user's */
	JUDGE_NO_SERVER,  /* the first client has it started */
	JUDGE_FAULT,
	JUDGE_FULL,
	JUDGE_UNKNOWN, /* the daemon speaks another protocol */
};

/* From how many clients on a server is called full: what one took on an H200 with driver
 * 580.159.04, and what NVIDIA's man page says; its newer documentation says 60. */
#define JUDGE_FULL_CLIENTS 48

struct judgement {
	enum judge_state state;
	bool is_client; /* a program started now becomes one, at once */
	char text[400];
	char remedy[400];     /* empty where there is nothing to do */
	pid_t daemon, server; /* 0: none, or not known */
	uid_t server_uid;     /* where there is a server */
	int clients;          /* -1: not known, since only its user is told */
};

/* `folder`: the value of CUDA_MPS_PIPE_DIRECTORY. For a program of our own effective user. With
 * `asks` the daemon is asked for its server, state and clients, where it answers us; without, what
 * can be seen of the processes has to do, in some milliseconds. */
void judge_folder(const char *folder, bool asks, struct judgement *ret_judgement);

/* Whether a program would wait, or fail, for what is there. */
bool judge_is_bad(const struct judgement *judgement);
