/* A spare's terminal. Runs in what holds a spare, a session's leader with every signal blocked. */
#include "spare/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

int pty_open(struct pty *ret_pty)
{
	struct pty pty = {
		.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), .slave = -1};
	int rc = 0;

	*ret_pty = (struct pty){.master = -1, .slave = -1};
	if (pty.master < 0)
		return -errno;
	if (!unlockpt(pty.master)) /* its slave is the user's own already: grantpt(3) */
		pty.slave = ioctl(pty.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (pty.slave < 0 || ioctl(pty.slave, TIOCSCTTY, 0))
		rc = -errno;
	if (!rc) {
		*ret_pty = pty;
		return 0;
	}
	if (pty.slave >= 0)
		close(pty.slave);
	close(pty.master);
	return rc;
}

void pty_give(const struct pty *pty, pid_t group)
{
	if (pty->slave >= 0)
		tcsetpgrp(pty->slave, group ? group : getpgrp());
}

void pty_close(struct pty *pty)
{
	pty_give(pty, 0);
	if (pty->slave >= 0) {
		ioctl(pty->slave, TIOCNOTTY);
		close(pty->slave);
	}
	if (pty->master >= 0)
		close(pty->master);
	*pty = (struct pty){.master = -1, .slave = -1};
}
