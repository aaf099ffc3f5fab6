/* Keeping a spare for who starts the same program again and again, as Jupyter does with a kernel.
 * Runs in `hearth run --spare`, just before it execs the program. */
#include "spare/keep.h"

#include "spare/folder.h"
#include "spare/hold.h"
#include "spare/kind.h"
#include "spare/whose.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IDLE_S 3600
#define PAUSE_US 1000000 /* a kernel's own start */

/* It is ours until we end, so its number is not another's. */
static int open_parent(void)
{
	pid_t parent = getppid();
	int fd = (int)syscall(SYS_pidfd_open, parent, 0);

	if (fd >= 0 && getppid() != parent) {
		close(fd);
		return -ESRCH;
	}
	return fd < 0 ? -errno : fd;
}

static int start(const struct command_line *line, const struct text *kind, char **imports)
{
	struct spare_plan plan = {.python = line->python,
		.flags = line->flags,
		.flag_count = line->flag_count,
		.imports = imports,
		.environment = environ,
		.kind = kind->bytes,
		.kind_size = kind->size,
		.idle_s = IDLE_S,
		.pause_us = PAUSE_US,
		.parent_fd = open_parent(),
		.page = {.device = -1, .is_named = true}};
	int rc = plan.parent_fd < 0 ? plan.parent_fd : 0;

	whose_profile(line, imports, &plan.page.identity);
	if (!rc)
		rc = hold_start(&plan, -1);
	if (plan.parent_fd >= 0)
		close(plan.parent_fd);
	return rc;
}

int spare_keep(char **words, char **imports)
{
	struct command_line line;
	struct text kind = {0};
	int rc = command_line_read(words, &line);

	if (!rc && line.kind == COMMAND_LINE_NONE)
		rc = -ENOTSUP;
	if (!rc)
		rc = kind_make(&line, environ, &kind);
	if (rc)
		return rc;
	if (!folder_has(kind_digest(&kind)))
		rc = start(&line, &kind, imports);
	text_done(&kind);
	return rc;
}
