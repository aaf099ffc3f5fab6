/* Writing that sends no signal. Runs on any thread of any process of Hearth, also in the user's
 * program and in its fork children; must leave the thread's mask and the program's pending signals
 * as they were. */
#include "base/own_write.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static const int signals[] = {SIGPIPE, SIGXFSZ};

/* A signal that the thread does not block cannot be pending: mostly there is nothing to ask. */
static bool is_pending(int signal, const sigset_t *blocked)
{
	sigset_t pending;

	if (!sigismember(blocked, signal))
		return false;
	sigemptyset(&pending);
	sigpending(&pending);
	return sigismember(&pending, signal);
}

void own_write_begin(struct own_write *ret_guard)
{
	sigset_t both;

	sigemptyset(&both);
	sigemptyset(&ret_guard->ours);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaddset(&both, signals[i]);
	sigprocmask(SIG_BLOCK, &both, &ret_guard->kept);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!is_pending(signals[i], &ret_guard->kept))
			sigaddset(&ret_guard->ours, signals[i]);
}

void own_write_end(const struct own_write *guard, bool has_failed)
{
	const struct timespec now = {0};
	int kept = errno;

	while (has_failed && sigtimedwait(&guard->ours, NULL, &now) > 0)
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
	own_write_end(&guard, written < 0);
	return written;
}
