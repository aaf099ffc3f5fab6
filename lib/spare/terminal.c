/* Passing a terminal on to a pty. Runs in `hearth run --spare`, which has one thread and all its
 * signals blocked by then. Must leave the terminal as the program has left the pty. */
#include "spare/terminal.h"

#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define POLLED_MASTER 0
#define POLLED_TTY 1
#define MOST_AT_ONCE (TERMINAL_ROOM - 1)

void terminal_find(struct terminal *ret_terminal)
{
	*ret_terminal = (struct terminal){.master = -1, .slave = -1};
	ret_terminal->tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

bool terminal_is(int fd)
{
	struct stat info;

	/* The master's end of a pty answers for the other. */
	return tcgetpgrp(fd) >= 0 && !fstat(fd, &info) && info.st_rdev != makedev(5, 2);
}

void terminal_start(struct terminal *terminal, int master, int slave)
{
	struct termios settings;

	terminal->master = master;
	terminal->slave = slave;
	if (!tcgetattr(terminal->tty, &settings))
		tcsetattr(master, TCSANOW, &settings);
	terminal_pass_size(terminal);
}

static bool is_empty(const struct terminal_flow *flow)
{
	return flow->begin == flow->end;
}

static bool has_failed(ssize_t got)
{
	return got < 0 && errno != EAGAIN && errno != EINTR;
}

static void take_in(int fd, struct terminal_flow *flow)
{
	ssize_t got = read(fd, flow->bytes, MOST_AT_ONCE);

	flow->begin = 0;
	flow->end = got > 0 ? (size_t)got : 0;
}

/* False where there is nobody to take it. */
static bool put_out(int fd, struct terminal_flow *flow)
{
	ssize_t got;

	if (is_empty(flow))
		return true;
	got = write(fd, flow->bytes + flow->begin, flow->end - flow->begin);
	if (got > 0)
		flow->begin += (size_t)got;
	return !has_failed(got);
}

static bool ends_lines(int tty)
{
	struct termios settings;

	return !tcgetattr(tty, &settings) &&
	       (settings.c_oflag & (OPOST | ONLCR)) == (OPOST | ONLCR);
}

/* What the pty has written. A terminal that is not raw ends lines once more: so each "\r\n", which
 * the pty has made of a "\n", is one again. */
static void take_written(struct terminal *terminal)
{
	struct terminal_flow *flow = &terminal->out;
	size_t kept = 0;

	take_in(terminal->master, flow);
	/* They come together, but the room may have ended between them. */
	if (flow->end == MOST_AT_ONCE && flow->bytes[flow->end - 1] == '\r' &&
		read(terminal->master, flow->bytes + flow->end, 1) == 1)
		flow->end++;
	if (terminal->is_given || !ends_lines(terminal->master) || !ends_lines(terminal->tty))
		return;
	for (size_t i = 0; i < flow->end; i++)
		if (flow->bytes[i] != '\r' || i + 1 == flow->end || flow->bytes[i + 1] != '\n')
			flow->bytes[kept++] = flow->bytes[i];
	flow->end = kept;
}

/* What was typed before the terminal was raw has been shown; the pty shows it no more. */
static void pass_typed_before(struct terminal *terminal, const struct termios *settings)
{
	struct pollfd slave = {.fd = terminal->slave, .events = POLLIN};
	struct termios silent = *settings;

	take_in(terminal->tty, &terminal->in);
	if (is_empty(&terminal->in))
		return;
	silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	tcsetattr(terminal->master, TCSANOW, &silent);
	put_out(terminal->master, &terminal->in);
	poll(&slave, 1, 0); /* has the kernel take it in (n_tty_poll of Linux) */
	tcsetattr(terminal->master, TCSANOW, settings);
}

static bool is_ours(const struct terminal *terminal)
{
	return terminal->tty >= 0 && tcgetpgrp(terminal->tty) == getpgrp();
}

static bool has_given(const struct terminal *terminal)
{
	return terminal->is_given && raw_is(terminal->tty);
}

bool terminal_offer(struct terminal *terminal)
{
	if (!is_ours(terminal))
		return false;
	if (has_given(terminal))
		return true;
	return !tcgetattr(terminal->tty, &terminal->before) &&
	       !tcsetattr(terminal->master, TCSANOW, &terminal->before);
}

void terminal_give(struct terminal *terminal)
{
	bool is_new = !has_given(terminal);

	terminal->is_given = true;
	if (is_new && !raw_enter(terminal->tty))
		pass_typed_before(terminal, &terminal->before);
}

void terminal_take_back(struct terminal *terminal)
{
	struct termios settings;

	if (!terminal->is_given)
		return;
	terminal->is_given = false;
	raw_leave(terminal->tty,
		tcgetattr(terminal->master, &settings) ? &terminal->before : &settings);
}

void terminal_pass_size(const struct terminal *terminal)
{
	struct winsize size;

	if (terminal->tty >= 0 && !ioctl(terminal->tty, TIOCGWINSZ, &size))
		ioctl(terminal->master, TIOCSWINSZ, &size);
}

void terminal_poll(const struct terminal *terminal, struct pollfd ret_polled[TERMINAL_POLLED])
{
	bool can_read = terminal->is_given && is_empty(&terminal->in);

	ret_polled[POLLED_MASTER] = (struct pollfd){.fd = terminal->master,
		.events = (short)((is_empty(&terminal->out) ? POLLIN : 0) |
				  (is_empty(&terminal->in) ? 0 : POLLOUT))};
	ret_polled[POLLED_TTY] = (struct pollfd){.fd = terminal->tty,
		.events = (short)((can_read ? POLLIN : 0) |
				  (is_empty(&terminal->out) ? 0 : POLLOUT))};
}

/* What is typed to stop or end programs natively does so to all of this process's group. The
 * program's has it from the pty. */
static void signal_others(const struct terminal *terminal)
{
	static const struct {
		int index, number;
	} keys[] = {{VINTR, SIGINT}, {VQUIT, SIGQUIT}, {VSUSP, SIGTSTP}};
	const struct terminal_flow *flow = &terminal->in;
	struct termios settings;

	if (tcgetattr(terminal->master, &settings) || !(settings.c_lflag & ISIG))
		return;
	for (size_t i = flow->begin; i < flow->end; i++)
		for (size_t key = 0; key < sizeof(keys) / sizeof(keys[0]); key++)
			if ((cc_t)flow->bytes[i] == settings.c_cc[keys[key].index] &&
				flow->bytes[i] != _POSIX_VDISABLE)
				kill(0, keys[key].number);
}

static void read_typed(struct terminal *terminal)
{
	take_in(terminal->tty, &terminal->in);
	if (is_empty(&terminal->in) && !is_ours(terminal))
		terminal->is_given = false; /* somebody has taken it from this process's group */
	signal_others(terminal);
	put_out(terminal->master, &terminal->in);
}

void terminal_move(struct terminal *terminal, const struct pollfd polled[TERMINAL_POLLED])
{
	if (terminal->master < 0)
		return;
	if (polled[POLLED_TTY].revents & (POLLHUP | POLLERR | POLLNVAL)) {
		terminal_end(terminal); /* the pty hangs up, as nobody else has its master */
		return;
	}
	if (polled[POLLED_MASTER].revents & POLLIN)
		take_written(terminal);
	if (!put_out(terminal->tty, &terminal->out))
		terminal->out.begin = terminal->out.end;
	if (polled[POLLED_MASTER].revents & POLLOUT)
		put_out(terminal->master, &terminal->in);
	if (polled[POLLED_TTY].revents & POLLIN && is_empty(&terminal->in))
		read_typed(terminal);
}

void terminal_drain(struct terminal *terminal, int signal_fd)
{
	struct pollfd polled[] = {
		{.fd = terminal->tty, .events = POLLOUT}, {.fd = signal_fd, .events = POLLIN}};

	while (terminal->tty >= 0) {
		if (is_empty(&terminal->out))
			take_written(terminal);
		if (is_empty(&terminal->out) || !put_out(terminal->tty, &terminal->out))
			return;
		if (!is_empty(&terminal->out) && poll(polled, 2, -1) > 0 && polled[1].revents)
			return;
	}
}

static void put_back_typed(struct terminal *terminal)
{
	struct termios settings, raw;
	struct terminal_flow unread = {.end = 0};

	if (tcgetattr(terminal->slave, &settings))
		return;
	raw = settings;
	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	tcsetattr(terminal->slave, TCSANOW, &raw);
	take_in(terminal->slave, &unread);
	tcsetattr(terminal->slave, TCSANOW, &settings);
	for (size_t i = 0; i < unread.end; i++)
		ioctl(terminal->tty, TIOCSTI, unread.bytes + i);
}

void terminal_end(struct terminal *terminal)
{
	if (terminal->is_given && is_ours(terminal))
		put_back_typed(terminal);
	terminal_take_back(terminal);
	socket_close_all(&terminal->tty, 1);
	socket_close_all(&terminal->master, 1);
	socket_close_all(&terminal->slave, 1);
}
