/* Writing that sends no signal. Runs on any thread of any process of Hearth, also in the user's
 * program and in its fork children; must leave the thread's mask and the program's pending signals
 * as they were. */
#include "base/own_write.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static const int signals[] = {SIGPIPE, SIGXFSZ};

void own_write_begin(struct own_write *ret_guard)
{
	sigset_t pending;

	sigemptyset(&pending);
	sigpending(&pending);
	sigemptyset(&ret_guard->ours);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!sigismember(&pending, signals[i]))
			sigaddset(&ret_guard->ours, signals[i]);
	sigprocmask(SIG_BLOCK, &ret_guard->ours, &ret_guard->kept);
}

void own_write_end(const struct own_write *guard)
{
	const struct timespec now = {0};
	int kept = errno;

	while (sigtimedwait(&guard->ours, NULL, &now) > 0)
		;
	sigprocmask(SIG_SETMASK, &guard->kept, NULL);
	errno = kept;
}

ssize_t own_write(int fd, const void *data, size_t size)
{
	struct own_write guard;
	ssize_t written;

	own_write_begin(&guard);
	written = write(fd, data, size);
	own_write_end(&guard);
	return written;
}
