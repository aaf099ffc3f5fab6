/* Running a program as a child that behaves as if nobody stood between it and the shell. Runs in
 * `hearth run --report`, `hearth compare` and `hearth entrypoint`, which have one thread. Must
 * never make a process group (the terminal's foreground group would be lost), and become a reaper
 * of the program's orphans only where it is asked to be one. */
#include "launch/child.h"

#include "base/clock.h"
#include "launch/wrap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What is passed on. The rest either cannot be caught, is about ourselves (SIGCHLD, faults), or is
 * sent by the terminal to the whole group anyway and ignored by default (SIGWINCH). */
static const int forwarded[] = {
	SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT};

/* The signal state before we touched it: what the program inherits. */
struct signals {
	sigset_t mask;
	struct sigaction chld;
};

int child_exec_status(int error)
{
	return error == ENOENT || error == ENOTDIR ? CHILD_NOT_FOUND : CHILD_NOT_EXECUTABLE;
}

/* Our own faults. An init forwards all but these: an image's STOPSIGNAL may be any. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

/* From child_hold_signals on. */
static bool is_held;
static struct signals before_hold;

static void signals_take(bool is_init, sigset_t *ret_waited, struct signals *ret_before)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	sigemptyset(ret_waited);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		sigaddset(ret_waited, forwarded[i]);
	if (is_init)
		sigfillset(ret_waited);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(ret_waited, faults[i]);
	sigaddset(ret_waited, SIGCHLD);
	if (is_held) {
		*ret_before = before_hold;
		return;
	}
	sigprocmask(SIG_BLOCK, ret_waited, &ret_before->mask);
	/* An inherited SIG_IGN would make the kernel reap the child without its status. */
	sigaction(SIGCHLD, &dfl, &ret_before->chld);
}

void child_hold_signals(bool is_init)
{
	sigset_t waited;

	signals_take(is_init, &waited, &before_hold);
	is_held = true;
}

static void signals_give_back(const struct signals *before)
{
	sigaction(SIGCHLD, &before->chld, NULL);
	sigprocmask(SIG_SETMASK, &before->mask, NULL);
}

static void replace_fd(int fd, int target)
{
	if (fd >= 0 && fd != target)
		dup2(fd, target);
}

static _Noreturn void run_in_child(const struct child_options *options,
	const struct signals *before, pid_t parent, int error_fd)
{
	int error;

	/* Who kills us with SIGKILL means the program, which would have had our pid. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(CHILD_OWN_ERROR);
	replace_fd(options->stdin_fd, STDIN_FILENO);
	replace_fd(options->stdout_fd, STDOUT_FILENO);
	replace_fd(options->stderr_fd, STDERR_FILENO);
	signals_give_back(before);
	if (options->is_eager)
		wrap_set_eager();
	execvpe(options->words[0], options->words,
		options->environment ? options->environment : environ);
	error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(CHILD_OWN_ERROR);
	_exit(child_exec_status(error));
}

/* A signal from the terminal (SI_KERNEL) has reached the whole group, the program included. */
static void forward(pid_t pid, const siginfo_t *info)
{
	if (info->si_signo != SIGCHLD && info->si_code != SI_KERNEL)
		kill(pid, info->si_signo);
}

static bool is_ending(int number)
{
	return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM;
}

int child_held_ending(void)
{
	struct sigaction action;
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
		if (is_ending(forwarded[i]) && sigismember(&pending, forwarded[i]) &&
			!sigaction(forwarded[i], NULL, &action) && action.sa_handler != SIG_IGN)
			return forwarded[i];
	return 0;
}

/* Looks after the child until it has ended, and as an init after its orphans. */
static void watch(bool is_init, struct child_end *end, const sigset_t *waited)
{
	for (;;) {
		int status;
		int got = waitpid(is_init ? -1 : end->pid, &status, WNOHANG | WUNTRACED);
		siginfo_t info = {0};
		sigset_t pending;

		if (got > 0 && got != end->pid)
			continue;
		if (got == end->pid)
			end->status = status;
		if (got == end->pid && !WIFSTOPPED(end->status))
			return;
		if (got == end->pid) {
			/* Unless we were continued together in the meantime. */
			sigpending(&pending);
			if (!sigismember(&pending, SIGCONT))
				raise(SIGSTOP);
			continue;
		}
		if (sigwaitinfo(waited, &info) <= 0)
			continue;
		if (is_ending(info.si_signo))
			end->caught = info.si_signo;
		forward(end->pid, &info);
	}
}

int child_run(const struct child_options *options, struct child_end *ret_end)
{
	struct child_end end = {0};
	struct signals before;
	uint64_t began_us;
	sigset_t waited;
	int errors[2], error = 0;
	pid_t parent = getpid();
	ssize_t got;

	if (pipe2(errors, O_CLOEXEC))
		return -errno;
	signals_take(options->is_init, &waited, &before);
	began_us = clock_monotonic_us();
	end.pid = fork();
	if (end.pid < 0) {
		error = -errno;
		signals_give_back(&before);
		close(errors[0]);
		close(errors[1]);
		return error;
	}
	if (!end.pid)
		run_in_child(options, &before, parent, errors[1]);
	close(errors[1]);
	do
		got = read(errors[0], &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	close(errors[0]);
	watch(options->is_init, &end, &waited);
	end.wall_us = clock_monotonic_us() - began_us;
	signals_give_back(&before);
	if (got == sizeof(error))
		return error;
	*ret_end = end;
	return 0;
}

_Noreturn void child_mirror(int status)
{
	struct rlimit no_core = {0};
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t only;

	if (WIFEXITED(status))
		exit(WEXITSTATUS(status));
	/* The program has left its core file, if any; ours would take its place. */
	setrlimit(RLIMIT_CORE, &no_core);
	sigaction(WTERMSIG(status), &dfl, NULL);
	sigemptyset(&only);
	sigaddset(&only, WTERMSIG(status));
	fflush(NULL);
	raise(WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	exit(128 + WTERMSIG(status)); /* as a shell shows it */
}
