/* What identifies a program: whether two runs are runs of the same one.
 *
 *   executable       its real path
 *   script           of an interpreter: its real path, else a digest of its content
 *   module           `-m name`, with the working folder where the module lies there
 *   text             a digest of `-c text`
 *   child            of multiprocessing spawn/forkserver, loky, ray: its parent's identity and its
 * role notebook         of a Jupyter kernel: JPY_SESSION_NAME
 *
 * To each is added the shape of its arguments: which options are present, not their values, in any
 * order (`train.py --help` exits at once, so it is another program than `train.py`).
 *
 * Nothing of it can be read back but the base name. No allocation; bounded work. Only python and
 * pypy are taken for interpreters; what runs under another one is that executable. */
#pragma once

#include "profile/digest.h"

#include <stdbool.h>

#define IDENTITY_NAME_SIZE 64
#define IDENTITY_OPTIONS_MAX 64         /* further ones don't count */
#define IDENTITY_CONTENT_MAX (1u << 20) /* bytes of a script that are digested */
#define IDENTITY_ANCESTORS_MAX 4        /* children of children that are followed */

enum identity_kind {
	IDENTITY_EXECUTABLE = 1,
	IDENTITY_SCRIPT,
	IDENTITY_MODULE,
	IDENTITY_TEXT,
	IDENTITY_STDIN, /* an interpreter that reads a terminal or a pipe: all of them are one */
	IDENTITY_CHILD,
	IDENTITY_NOTEBOOK,
	IDENTITY_KIND_COUNT,
};

/* Base name in logs and JSON: "executable", "script", ... */
const char *identity_kind_name(enum identity_kind kind);

struct identity {
	uint8_t digest[DIGEST_SIZE];
	enum identity_kind kind;
	char name[IDENTITY_NAME_SIZE]; /* printable base name, NUL-padded */
};

/* What is known about a process. Strings belong to the caller. */
struct identity_source {
	const char *executable; /* real path, as /proc/PID/exe says */
	const char *const *argv;
	int argc;
	const char *folder;            /* its working folder; NULL: this process's */
	const char *notebook;          /* JPY_SESSION_NAME, or NULL */
	const struct identity *parent; /* for a child; NULL where it isn't known */
};

/* Does the command line say that this process is some parent's spawned child? */
bool identity_is_child(const struct identity_source *source);

/* Computes the identity. Looks at the script's path (realpath, read of its content where that
 * fails); opens nothing else. */
void identity_compute(const struct identity_source *source, struct identity *ret_identity);

/* The functions below need some 40 KiB of stack (paths, a piece of a script) and change errno. They
 * are for the constructor and for tools, not for a program's small threads. */

/* This process's identity from the arguments that its constructor was given; of a spawned child the
 * parents are looked up in /proc. Call it before the program can change its working folder. 0 or a
 * negative errno (scratch memory is mapped and unmapped for parents alone). */
int identity_of_self(
	int argc, const char *const *argv, const char *notebook, struct identity *ret_identity);

/* Another process's identity, from /proc. `notebook` is its JPY_SESSION_NAME, or NULL. */
int identity_of_process(int pid, const char *notebook, struct identity *ret_identity);
