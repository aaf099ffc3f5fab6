/* The terminal of a spare, for a program that has one: a pty that its holder, a session's leader,
 * takes as its own before it starts the python. TIOCSCTTY gives it to the leader
 * alone (tty_ioctl(4)), and to what that forks from then on (seen on Linux 6.18). */
#pragma once

#include <sys/types.h>

struct pty {
	int master; /* non-blocking; -1 for none */
	int slave;
};

/* Makes one and takes it; SIGHUP is blocked. 0, or -errno with `ret_pty` as for none. */
int pty_open(struct pty *ret_pty);

/* Whose it is: that group's, or with 0 the holder's own, so that nobody else reads from it. */
void pty_give(const struct pty *pty, pid_t group);

/* Takes it from the whole session, without a signal to anyone but the caller. */
void pty_close(struct pty *pty);
