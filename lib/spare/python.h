/* The one python of a spare: started, told to run, ended. Its holder is its parent. */
#pragma once

#include "profile/spare_page.h"
#include "spare/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* What a spare is made of; copied by no one, stays for the holder's life. */
struct spare_plan {
	const char *python; /* absolute */
	char **flags;
	int flag_count;
	char **imports; /* ends with NULL */
	char **environment;
	const char *kind; /* kind_make's */
	size_t kind_size;
	unsigned idle_s;     /* it ends when it has waited that long */
	uint64_t pause_us;   /* before its start: what runs beside it comes first */
	int parent_fd;       /* a pidfd: nor longer than that process lives; -1 for none */
	bool is_auto;        /* kept unasked: within a budget, and */
	const char *learned; /* with the imports of that file (learned.h) in place of `imports` */
	struct spare_page page; /* what its page holds at the start */
};

struct python {
	pid_t pid;
	int control; /* a packet socket: bootstrap.py has the other end */
	int names;   /* where it writes the names of what it read */
	int printed; /* what it has written to its standard streams */
	struct timespec start;
	struct manifest manifest;
	struct spare_page *page; /* shared with libhearth.so in it */
};

/* With these imports, a list that ends with NULL; and nothing done on a GPU ahead, where `is_off`.
 * 0 or -errno. */
int python_start(const struct spare_plan *plan, char *const *imports, bool is_off,
	struct python *ret_python);

/* It has said that it is ready. 0; -ESTALE as manifest_take. */
int python_ready(struct python *python, char ret_name[PATH_MAX]);

/* Passes a request and its descriptors on, and asks. 0: it would run, and waits for python_go;
 * 1: it will not, for `ret_reason`, and is as it was; -errno: it is of no use any more. */
int python_offer(
	struct python *python, const int *fds, size_t fd_count, char *ret_reason, size_t size);
int python_go(struct python *python);

/* Whether it has written anything to its standard streams, which are nobody's before a program is
 * there: what the imports of a plain start would have shown. */
bool python_has_printed(const struct python *python);

/* On which device it has a context ahead, by its own word; -1 for none. */
int python_device(const struct python *python);

/* Kills and reaps it, and lets go of what belongs to it. */
void python_end(struct python *python);
