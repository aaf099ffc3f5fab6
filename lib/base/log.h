/* Messages for people, on stderr, only where HEARTH_LOG_LEVEL asks. Nothing is formatted below the
 * level. One write per message; no lock, no allocation; errno is kept. */
#pragma once

#include "base/settings.h"

/* Sets the level for this process. Until then nothing is said. */
void log_set_level(enum log_level level);

bool log_is_on(enum log_level level);

/* "hearth[pid]: message\n"; cut at LOG_MAX bytes. */
#define LOG_MAX 512
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_ERROR, __VA_ARGS__)
#define log_info(...) log_write(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_DEBUG, __VA_ARGS__)
