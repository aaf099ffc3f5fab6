/* Raw terminals. Runs in `hearth run --spare`, and in what holds a spare where that was killed. */
#include "spare/raw.h"

#include <errno.h>
#include <string.h>

bool raw_is(int tty)
{
	struct termios now, raw;

	if (tcgetattr(tty, &now))
		return false;
	raw = now;
	cfmakeraw(&raw);
	return raw.c_iflag == now.c_iflag && raw.c_oflag == now.c_oflag &&
	       raw.c_lflag == now.c_lflag && raw.c_cflag == now.c_cflag;
}

int raw_enter(int tty)
{
	struct termios raw;

	if (tcgetattr(tty, &raw))
		return -errno;
	cfmakeraw(&raw);
	return tcsetattr(tty, TCSANOW, &raw) ? -errno : 0;
}

void raw_leave(int tty, const struct termios *settings)
{
	if (raw_is(tty))
		tcsetattr(tty, TCSANOW, settings);
}
