/* Standing for a program. Runs in `hearth run --spare` from the moment on at which the program is
 * run elsewhere. Must end when the program does, and the program when it does. */
#include "spare/stand.h"

#include "base/env.h"
#include "launch/child.h"
#include "spare/packet.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PACKET_LIMIT_US 300000
#define OWN_POLLED 3

struct stand {
	int fd, signal_fd;
	struct terminal *terminal; /* its master is -1 where the program has no pty */
	int starter;               /* a Jupyter kernel's, a pidfd; else -1 */
};

static bool has_pty(const struct stand *stand)
{
	return stand->terminal->master >= 0;
}

/* Whether the program's group has the terminal now. */
static bool give_terminal(struct stand *stand)
{
	struct spare_message message;

	if (!terminal_offer(stand->terminal))
		return false;
	packet_init(&message, SPARE_FOREGROUND, 1);
	memcpy(message.text, &stand->terminal->before, sizeof(stand->terminal->before));
	packet_send(stand->fd, &message, NULL, 0);
	terminal_give(stand->terminal);
	return true;
}

/* Every signal that this process gets is the program's; what a terminal sends, its group's. */
static void pass_signal(struct stand *stand)
{
	struct signalfd_siginfo info;
	bool is_from_terminal;

	if (read(stand->signal_fd, &info, sizeof(info)) != sizeof(info) ||
		(info.ssi_code <= 0 && info.ssi_pid == (unsigned)getpid()))
		return;
	is_from_terminal = has_pty(stand) && info.ssi_code == SI_KERNEL;
	if (has_pty(stand) && info.ssi_signo == SIGCONT) {
		is_from_terminal = true; /* a shell sends it to the whole group */
		terminal_pass_size(stand->terminal);
		if (stand->terminal->is_eager)
			give_terminal(stand);
	}
	if (is_from_terminal && info.ssi_signo == SIGWINCH) {
		terminal_pass_size(stand->terminal);
		if (stand->terminal->is_given)
			return; /* the kernel has told it */
	}
	/* A kernel's starter sends each to the whole group, too (jupyter_client's
	 * LocalProvisioner). */
	packet_tell(stand->fd,
		is_from_terminal || stand->starter >= 0 ? SPARE_SIGNAL_ALL : SPARE_SIGNAL,
		(int)info.ssi_signo);
}

/* Stops this process by that signal. False where it was not: its group is an orphan. */
static bool stop_by(int number)
{
	sigset_t only, pending;

	sigemptyset(&only);
	sigaddset(&only, number);
	raise(number);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	sigprocmask(SIG_BLOCK, &only, NULL);
	sigpending(&pending);
	return number == SIGSTOP || sigismember(&pending, SIGCONT) == 1;
}

static void stop_with_program(struct stand *stand, int number)
{
	bool wants_terminal = has_pty(stand) && (number == SIGTTIN || number == SIGTTOU);

	if (has_pty(stand)) {
		terminal_drain(stand->terminal, stand->signal_fd);
		terminal_take_back(stand->terminal);
	}
	if (wants_terminal && give_terminal(stand)) {
		packet_tell(stand->fd, SPARE_SIGNAL_ALL, SIGCONT);
		return;
	}
	if (wants_terminal)
		kill(0, number);
	if (stop_by(number))
		return;
	/* As natively: such a group is not stopped, and has no use of a terminal. */
	if (wants_terminal)
		packet_tell(stand->fd, SPARE_SIGNAL_ALL, SIGHUP);
	packet_tell(stand->fd, SPARE_SIGNAL_ALL, SIGCONT);
}

static _Noreturn void end_as(struct stand *stand, int status)
{
	if (has_pty(stand))
		terminal_drain(stand->terminal, stand->signal_fd);
	terminal_end(stand->terminal);
	child_mirror(status);
}

static void hear_holder(struct stand *stand)
{
	struct spare_message message;

	/* Who held it was killed, and the program with it. */
	if (packet_receive(stand->fd, PACKET_LIMIT_US, &message, NULL, 0, NULL))
		end_as(stand, SIGKILL);
	if (message.what == SPARE_ENDED)
		end_as(stand, message.value);
	if (message.what == SPARE_STOPPED)
		stop_with_program(stand, message.value);
}

/* A kernel ends when it sees its parent's pid change (ipykernel's ParentPollerUnix). The program's
 * parent is its holder, so this process sees to it. */
static int open_starter(void)
{
	const char *pid = env_get(ENV_JPY_PARENT_PID);

	if (!pid || atoi(pid) != getppid())
		return -1;
	return (int)syscall(SYS_pidfd_open, getppid(), 0);
}

_Noreturn void stand_for(int fd, struct terminal *terminal, const sigset_t *taken)
{
	struct stand stand = {.fd = fd,
		.signal_fd = signalfd(-1, taken, SFD_CLOEXEC | SFD_NONBLOCK),
		.terminal = terminal,
		.starter = open_starter()};

	/* An ignored signal would not come through; the program may have taken it up. */
	for (int number = 1; number < NSIG; number++)
		if (sigismember(taken, number) == 1)
			signal(number, SIG_DFL);
	for (;;) {
		struct pollfd polled[OWN_POLLED + TERMINAL_POLLED] = {{.fd = fd, .events = POLLIN},
			{.fd = stand.signal_fd, .events = POLLIN},
			{.fd = stand.starter, .events = POLLIN}};

		terminal_poll(terminal, polled + OWN_POLLED);
		if (poll(polled, OWN_POLLED + TERMINAL_POLLED, -1) < 0)
			continue;
		if (polled[2].revents)
			end_as(&stand, SIGKILL);
		if (polled[1].revents)
			pass_signal(&stand);
		terminal_move(terminal, polled + OWN_POLLED);
		if (polled[0].revents)
			hear_holder(&stand);
	}
}
