/* The user's terminal, for a program whose terminal is a spare's pty: bytes, size and settings are
 * passed on. While the program's process group stands for this process's, which has to be the one
 * in the terminal's foreground, the terminal is raw and everything that is typed is the pty's. Else
 * it is as it was, nothing is read from it, and a program that reads is stopped by SIGTTIN. */
#pragma once

#include "spare/raw.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define TERMINAL_ROOM 4096
#define TERMINAL_POLLED 2

/* Bytes on their way. */
struct terminal_flow {
	char bytes[TERMINAL_ROOM];
	size_t begin, end;
};

struct terminal {
	int tty; /* non-blocking, its own description; -1 for none, or where it has hung up */
	int master, slave;
	bool is_eager; /* the program has it whenever this process's group has */
	bool is_given;
	struct termios before; /* its settings where it is given */
	struct terminal_flow out, in;
};

/* This process's controlling terminal; `ret_terminal->tty` is -1 where there is none. */
void terminal_find(struct terminal *ret_terminal);

/* Whether a descriptor is of this process's controlling terminal. */
bool terminal_is(int fd);

/* Takes a pty's two ends over, which become this terminal's like. */
void terminal_start(struct terminal *terminal, int master, int slave);

/* Prepares to give it to the program: `before` is set, and the pty has its settings. False where it
 * is not this process's group's to give. */
bool terminal_offer(struct terminal *terminal);

/* Gives it, once whoever is to set it right after this process's death has been told. */
void terminal_give(struct terminal *terminal);

/* Takes it back, with the settings that the pty has now, as a shell finds it natively. */
void terminal_take_back(struct terminal *terminal);

void terminal_pass_size(const struct terminal *terminal);

/* What to wait for, and what to do then. */
void terminal_poll(const struct terminal *terminal, struct pollfd ret_polled[TERMINAL_POLLED]);
void terminal_move(struct terminal *terminal, const struct pollfd polled[TERMINAL_POLLED]);

/* Shows all that the program has written, unless something comes from `signal_fd` first. */
void terminal_drain(struct terminal *terminal, int signal_fd);

/* What was typed and the program has not read is the shell's, as far as the kernel lets it be put
 * back (dev.tty.legacy_tiocsti). Ends the use of both; nothing of a terminal is left then. */
void terminal_end(struct terminal *terminal);
