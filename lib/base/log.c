/* Messages on stderr. Runs on any thread of any process of Hearth, also in the user's program:
 * takes no lock, allocates nothing, never fails loudly. */
#include "base/log.h"

#include "base/at_start.h"
#include "base/own_write.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

AT_START_DATA static enum log_level current = LOG_NONE;

void log_set_level(enum log_level level)
{
	__atomic_store_n(&current, level, __ATOMIC_RELAXED);
}

bool log_is_on(enum log_level level)
{
	return level != LOG_NONE && level <= __atomic_load_n(&current, __ATOMIC_RELAXED);
}

void log_write(enum log_level level, const char *format, ...)
{
	char text[LOG_MAX];
	int kept = errno;
	int head, body;
	size_t length;
	va_list args;

	if (!log_is_on(level))
		return;
	head = snprintf(text, sizeof(text), "hearth[%d]: ", (int)getpid());
	va_start(args, format);
	body = vsnprintf(text + head, sizeof(text) - (size_t)head, format, args);
	va_end(args);
	length = (size_t)head + (body > 0 ? (size_t)body : 0);
	if (length > sizeof(text) - 1)
		length = sizeof(text) - 1;
	text[length++] = '\n'; /* in the place of the final NUL */
	if (own_write(STDERR_FILENO, text, length) < 0) {
		/* nobody is left to tell */
	}
	errno = kept;
}
