/* What has to be the same for a spare to stand for a start: the law of "speculate, validate". */
#pragma once

#include "spare/command_line.h"
#include "spare/text.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Appends the kind of a start of this python, with these flags, from this process, in this
 * environment: words, each with its NUL. Two kinds are the same where their bytes are. 0 or -errno;
 * -ENOTSUP for an environment that no spare can have. */
int kind_make(const struct command_line *line, char **environment, struct text *ret_kind);

/* Whether a variable's value may differ: it is the shell's or the session's, and names nothing that
 * an import reads. `entry` is "NAME=VALUE". */
bool kind_is_harmless(const char *entry);

/* Their names, for people; ends with NULL. */
extern const char *const kind_harmless[];

/* For the name of a spare's socket. Says nothing by itself: the kinds are compared in full. */
uint64_t kind_digest(const struct text *kind);

/* The signals that this process ignores, a bit each by number. */
uint64_t kind_ignored_signals(void);
