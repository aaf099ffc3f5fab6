/* The proving process. One thread; no Hearth is preloaded in it and its environment is clean. It
 * must never call the driver itself: the self-test's children do. */
#include "broker/prove_child.h"

#include "driver/build_id.h"
#include "driver/verdict.h"
#include "undo/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICENESS 10 /* a program that starts meanwhile goes first */

static int read_build_id(const char *driver, struct build_id *ret_id)
{
	int fd = open(driver, O_RDONLY | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = build_id_of_file(fd, ret_id);
	close(fd);
	return rc;
}

static enum prove_status complain(const char *path, int rc)
{
	fprintf(stderr, "hearthd: %s: %s\n", path, strerror(-rc));
	return PROVE_ERROR;
}

static enum prove_status look(const char *folder, const struct build_id *id)
{
	static const enum prove_status statuses[] = {
		[VERDICT_NONE] = PROVE_UNKNOWN,
		[VERDICT_PASSED] = PROVE_PASSED,
		[VERDICT_FAILED] = PROVE_FAILED,
	};

	return statuses[verdict_find(folder, id, NULL)];
}

static enum prove_status prove(const char *driver, const char *folder, enum verdict_readers readers,
	const struct build_id *id)
{
	struct undo_verdict verdict;
	char text[UNDO_TEXT_MAX];
	int outcome = undo_test(driver, &verdict), rc;

	if (outcome < 0)
		return complain(driver, outcome);
	undo_format(&verdict, text);
	if (fputs(text, stdout) == EOF || fflush(stdout))
		return complain("stdout", -errno);
	if (outcome == UNDO_UNPROVED)
		return PROVE_UNKNOWN;
	rc = verdict_write(folder, id, readers, !outcome, text);
	if (rc)
		return complain(folder, rc);
	return outcome ? PROVE_FAILED : PROVE_PASSED;
}

int prove_child_main(char *const words[PROVE_ARGUMENTS])
{
	const char *driver = words[1], *folder = words[2];
	enum verdict_readers readers =
		strcmp(words[3], PROVE_FOR_ALL) ? VERDICT_FOR_OWNER : VERDICT_FOR_ALL;
	struct build_id id;
	int rc;

	prctl(PR_SET_NAME, "hearthd-prove");
	/* With whoever wanted to know. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpriority(PRIO_PROCESS, 0, NICENESS);
	rc = read_build_id(driver, &id);
	if (rc)
		return complain(driver, rc);
	return strcmp(words[0], PROVE_LOOK) ? prove(driver, folder, readers, &id)
					    : look(folder, &id);
}
