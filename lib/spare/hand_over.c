/* Adoption, from the holder's side: validate, offer, commit, and stand between client and program.
 * Until the client has said SPARE_GO nothing of the program has run and any failure is a plain
 * start; after it, the program runs here or nowhere. */
#include "spare/hand_over.h"

#include "base/socket.h"
#include "spare/folder.h"
#include "spare/hold.h"
#include "spare/packet.h"
#include "spare/raw.h"
#include "spare/request.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST_LIMIT_US 500000
#define GO_LIMIT_US 1000000
#define MOST_REQUEST (16u << 20)
/* The next one's work in the driver would stand in the way of the program's first. */
#define PAUSE_US 1000000

/* The user's terminal, for which the pty stands. */
struct client_terminal {
	int fd;                  /* -1 for none */
	struct termios settings; /* what it had before it was raw */
};

/* The descriptors that follow the first packet; the first is the request's text. */
static int receive_more(int fd, size_t wanted, int fds[REQUEST_FDS], size_t *count)
{
	struct spare_message message;

	while (*count < wanted) {
		int here[SPARE_FDS];
		size_t got = 0;
		int rc = packet_receive(fd, REQUEST_LIMIT_US, &message, here, SPARE_FDS, &got);

		if (!rc && (message.what != SPARE_MORE || !got || *count + got > REQUEST_FDS)) {
			socket_close_all(here, got);
			rc = -EPROTO;
		}
		if (rc)
			return rc;
		memcpy(fds + *count, here, got * sizeof(here[0]));
		*count += got;
	}
	return *count == wanted ? 0 : -EPROTO;
}

/* The request begins with the length of its kind, and the kind. */
static bool is_our_kind(const struct spare_plan *plan, int fd)
{
	struct stat info;
	uint32_t length;
	char *kind;
	bool is_same;

	if (fstat(fd, &info) || info.st_size > MOST_REQUEST ||
		pread(fd, &length, sizeof(length), 0) != sizeof(length) ||
		length != plan->kind_size)
		return false;
	kind = malloc(length);
	is_same = kind && pread(fd, kind, length, sizeof(length)) == (ssize_t)length &&
		  !memcmp(kind, plan->kind, length);
	free(kind);
	return is_same;
}

static void say_no(int fd, const char *reason)
{
	struct spare_message reply;

	packet_init(&reply, SPARE_NO, 0);
	snprintf(reply.text, sizeof(reply.text), "%s", reason);
	packet_send(fd, &reply, NULL, 0);
}

/* Whether the program has a say in it: what the terminal's stop signals would have done natively
 * they do not do to a process without a terminal. */
static bool is_default(pid_t pid, int number)
{
	char path[64], line[256];
	unsigned long long mask, taken = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status))
		if (sscanf(line, "SigIgn: %llx", &mask) == 1 ||
			sscanf(line, "SigCgt: %llx", &mask) == 1)
			taken |= mask;
	if (status)
		fclose(status);
	return !(taken >> (number - 1) & 1);
}

static void deliver(const struct holder *holder, int number)
{
	bool is_stop = number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
	pid_t pid = holder->python.pid;

	if (holder->pty.slave < 0 && is_stop && is_default(pid, number))
		number = SIGSTOP;
	if (number > 0 && number < NSIG)
		kill(pid, number);
}

/* For what natively reaches the whole group of a terminal. */
static void deliver_all(const struct holder *holder, int number)
{
	if (number > 0 && number < NSIG && getpgid(holder->python.pid) == holder->python.pid)
		kill(-holder->python.pid, number);
}

static void give_terminal(
	struct holder *holder, const struct spare_message *message, struct client_terminal *client)
{
	memcpy(&client->settings, message->text, sizeof(client->settings));
	pty_give(&holder->pty, holder->python.pid);
}

/* Whether the program tells what it imports, which the next spare is to have done. */
static bool is_teaching(const struct holder *holder)
{
	return holder->plan->learned && !holder->learned.is_taught;
}

/* Another one may be there, after a program that ran beside this one. */
static void take_place(struct holder *holder)
{
	const struct text kind = {
		.bytes = (char *)holder->plan->kind, .size = holder->plan->kind_size};

	if (!folder_has(kind_digest(&kind)))
		hold_start(holder->plan, -1);
}

static void look_at_program(struct holder *holder, int fd)
{
	struct signalfd_siginfo info;
	int status;

	while (read(holder->signal_fd, &info, sizeof(info)) == sizeof(info))
		;
	while (waitpid(holder->python.pid, &status, WNOHANG | WUNTRACED) == holder->python.pid) {
		if (WIFSTOPPED(status)) {
			pty_give(&holder->pty, 0);
			packet_tell(fd, SPARE_STOPPED, WSTOPSIG(status));
			continue;
		}
		/* What it leaves behind in its group gets no SIGHUP. */
		pty_close(&holder->pty);
		packet_tell(fd, SPARE_ENDED, status);
		if (is_teaching(holder))
			take_place(holder);
		_exit(0);
	}
}

/* The client is gone, by SIGKILL, and natively it would have been the program: with its group, as
 * who kills a group cannot reach this one. */
static _Noreturn void end_program(struct holder *holder, const struct client_terminal *client)
{
	if (client->fd >= 0)
		raw_leave(client->fd, &client->settings);
	deliver_all(holder, SIGKILL);
	python_end(&holder->python);
	_exit(0);
}

/* For the rest of the program's life. */
static _Noreturn void stand_between(struct holder *holder, int fd, struct client_terminal *client)
{
	struct spare_message message;

	look_at_program(holder, fd);
	for (;;) {
		struct pollfd polled[] = {
			{.fd = fd, .events = POLLIN}, {.fd = holder->signal_fd, .events = POLLIN}};
		int rc = 0;

		if (poll(polled, 2, -1) < 0)
			continue;
		if (polled[1].revents)
			look_at_program(holder, fd);
		if (!polled[0].revents)
			continue;
		rc = packet_receive(fd, REQUEST_LIMIT_US, &message, NULL, 0, NULL);
		if (!rc && message.what == SPARE_SIGNAL)
			deliver(holder, message.value);
		if (!rc && message.what == SPARE_SIGNAL_ALL)
			deliver_all(holder, message.value);
		if (!rc && message.what == SPARE_FOREGROUND)
			give_terminal(holder, &message, client);
		if (rc && rc != -ETIMEDOUT)
			end_program(holder, client);
	}
}

static enum hand_over_result decide(
	struct holder *holder, int fd, size_t wanted, int fds[REQUEST_FDS], size_t *count)
{
	int ends[] = {holder->pty.master, holder->pty.slave};
	struct client_terminal client = {.fd = -1};
	struct spare_plan next = *holder->plan;
	struct spare_message message;
	char reason[SPARE_TEXT] = "";
	size_t has_terminal = 0;
	int rc;

	if (!is_our_kind(holder->plan, fds[0])) {
		say_no(fd, "of another kind");
		return HAND_OVER_AS_IT_WAS;
	}
	if (manifest_check(&holder->python.manifest)) {
		say_no(fd, "a file that it loaded was changed");
		return HAND_OVER_SPOILT;
	}
	packet_init(&message, SPARE_MORE, 0);
	if (packet_send(fd, &message, ends, ends[0] < 0 ? 0 : 2) ||
		receive_more(fd, wanted, fds, count))
		return HAND_OVER_AS_IT_WAS;
	rc = python_offer(&holder->python, fds, *count, reason, sizeof(reason));
	if (rc) {
		say_no(fd, rc > 0 ? reason : strerror(-rc));
		return rc > 0 ? HAND_OVER_AS_IT_WAS : HAND_OVER_SPOILT;
	}
	request_name(fds[0], holder->python.page->name);
	if (packet_tell(fd, SPARE_START, 0) ||
		packet_receive(fd, GO_LIMIT_US, &message, &client.fd, 1, &has_terminal))
		return HAND_OVER_SPOILT;
	if (message.what != SPARE_GO) {
		socket_close_all(&client.fd, has_terminal);
		return HAND_OVER_SPOILT;
	}
	socket_close_all(fds, *count);
	/* Before its master: of one that was hung up the kernel tells this group, and with it what
	 * the program leaves behind, at this process's end. */
	if (!has_terminal)
		pty_close(&holder->pty);
	socket_close_all(&holder->pty.master, 1); /* its end is the client's end */
	holder->pty.master = -1;
	if (has_terminal && message.value)
		give_terminal(holder, &message, &client);
	if (python_device(&holder->python) >= 0)
		next.pause_us = PAUSE_US;
	if (python_go(&holder->python))
		_exit(1);
	/* The next one is there before this one is not: `hearth spare stop` misses none. */
	if (!is_teaching(holder))
		hold_start(&next, -1);
	unlink(holder->path);
	close(holder->listen_fd);
	stand_between(holder, fd, &client);
}

enum hand_over_result hand_over(struct holder *holder, int fd, const struct spare_message *message,
	int *fds, size_t fd_count)
{
	enum hand_over_result result = HAND_OVER_AS_IT_WAS;
	int all[REQUEST_FDS];
	size_t count = fd_count;

	memcpy(all, fds, fd_count * sizeof(fds[0]));
	for (size_t i = 0; i < fd_count; i++)
		fds[i] = -1; /* `all` has them now */
	if (fd_count == REQUEST_OWN_FDS && message->value >= REQUEST_OWN_FDS &&
		message->value <= REQUEST_FDS)
		result = decide(holder, fd, (size_t)message->value, all, &count);
	socket_close_all(all, count);
	return result;
}
