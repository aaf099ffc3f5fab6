/* Programs run as children by a tool that stays: signals, stops and the end are passed on both
 * ways, so that the tool in between makes no difference. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* The tools' own exit statuses, as env(1) and timeout(1) have them. */
#define CHILD_OWN_ERROR 125
#define CHILD_NOT_EXECUTABLE 126
#define CHILD_NOT_FOUND 127

/* The exit status for an exec that failed with this errno. */
int child_exec_status(int error);

struct child_options {
	char **environment; /* NULL = ours */
	int stdin_fd;       /* -1 = ours */
	int stdout_fd;
	int stderr_fd;
	bool is_eager; /* as wrap_set_eager; needs `environment` NULL */
	bool is_init;  /* we are PID 1, or stand for it: reap orphans, forward every signal */
	char **words;  /* the program, looked up in PATH, and its arguments; NULL at the end */
};

struct child_end {
	int status; /* as waitpid has it */
	int caught; /* the last of SIGHUP, SIGINT, SIGQUIT and SIGTERM that reached us; 0 = none */
	pid_t pid;
	unsigned long wall_us; /* from before fork to after wait */
};

/* Holds signals back from now on, so that those that come before the program runs are not lost:
 * child_run passes them on. `is_init` as there. */
void child_hold_signals(bool is_init);

/* Which of SIGHUP, SIGINT, SIGQUIT and SIGTERM is held, unless it is ignored; 0 = none. */
int child_held_ending(void);

/* Runs the program to its end in our own process group: the terminal's signals reach it as they
 * reach us. Signals sent to us alone are forwarded; if it stops, we stop, and go on together.
 * Returns 0; the negative errno of fork or pipe; or, positive, the errno of an exec that failed. */
int child_run(const struct child_options *options, struct child_end *ret_end);

/* Ends this process as the program ended: with its exit status, or by its signal. */
_Noreturn void child_mirror(int status);
