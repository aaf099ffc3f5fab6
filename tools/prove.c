/* Proving on request. Runs in the hearth tool, which must not call a driver itself: hearthd's
 * proving process is started, and its words are read. */
#include "prove.h"

#include "base/install.h"
#include "broker/process.h"
#include "broker/prove_child.h"
#include "command.h"
#include "doctor/proof.h"
#include "undo/undo.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const outcomes[] = {
	[PROVE_PASSED] = "passed",
	[PROVE_FAILED] = "failed",
	[PROVE_ERROR] = "error",
	[PROVE_UNKNOWN] = "not run",
};

/* Everything up to the end of what it prints. 0 or -errno. */
static int read_all(int from, char ret_text[UNDO_TEXT_MAX])
{
	size_t have = 0;
	ssize_t got;

	do {
		got = read(from, ret_text + have, UNDO_TEXT_MAX - 1 - have);
		if (got > 0)
			have += (size_t)got;
	} while (got > 0 || (got < 0 && errno == EINTR));
	ret_text[have] = '\0';
	return got < 0 ? -errno : 0;
}

/* The child's exit status, or -errno. */
static int run_child(const struct proof *proof, char ret_text[UNDO_TEXT_MAX])
{
	char program[PATH_MAX];
	struct prove_request request = {
		.program = program,
		.what = PROVE_RUN,
		.driver = proof->driver,
		.folder = proof->state_dir,
		.readers = strcmp(proof->state_dir, VERDICT_SYSTEM_DIR) ? PROVE_FOR_OWNER
									: PROVE_FOR_ALL,
	};
	int ends[2], status, rc = install_find(INSTALL_BROKER, sizeof(program), program);
	pid_t pid;

	if (rc)
		return rc;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	request.out = ends[1];
	rc = process_start_prover(&request, &pid);
	close(ends[1]);
	if (!rc) {
		rc = read_all(ends[0], ret_text);
		while (waitpid(pid, &status, 0) < 0)
			if (errno != EINTR)
				rc = -errno;
	}
	close(ends[0]);
	if (rc)
		return rc;
	return WIFEXITED(status) && WEXITSTATUS(status) <= PROVE_UNKNOWN ? WEXITSTATUS(status)
									 : PROVE_ERROR;
}

static int print_json(const struct proof *proof, int status, char *text)
{
	char id[2 * BUILD_ID_MAX + 1];
	json_t *lines = json_array();

	build_id_format(&proof->id, id);
	for (char *line = strsep(&text, "\n"); line; line = strsep(&text, "\n"))
		if (*line)
			json_array_append_new(lines, json_string(line));
	return command_print_json(json_pack("{s:i, s:s, s:s, s:s, s:s, s:o}", "v", 1, "proof",
					  outcomes[status], "driver", proof->driver, "build_id", id,
					  "state_dir", proof->state_dir, "lines", lines),
		stdout);
}

static void print_text(const struct proof *proof, int status, const char *text)
{
	fputs(text, stdout);
	if (status == PROVE_PASSED)
		printf("proven with %s: what programs did before is done ahead for them\n",
			proof->driver);
	else if (status == PROVE_FAILED)
		printf("disproved with %s: nothing is done ahead\n", proof->driver);
}

int prove_now(bool is_json)
{
	char text[UNDO_TEXT_MAX] = "";
	struct proof proof;
	struct scene scene;
	int rc = scene_init(NULL, &scene);

	if (rc)
		return command_fail(COMMAND_FAILED, "doctor: %s", strerror(-rc));
	proof_subject(&scene, &proof);
	scene_done(&scene);
	if (!proof.driver[0])
		return command_fail(COMMAND_FAILED,
			"doctor: nothing to prove: no driver of a GPU is found here; see `hearth "
			"doctor`");
	if (!proof.state_dir[0])
		return command_fail(COMMAND_FAILED,
			"doctor: nowhere to store it: set HEARTH_STATE_DIR or HOME");
	rc = run_child(&proof, text);
	if (rc < 0)
		return command_fail(COMMAND_FAILED, "doctor: %s: %s", install_name(INSTALL_BROKER),
			strerror(-rc));
	if (is_json && print_json(&proof, rc, text))
		return COMMAND_FAILED;
	if (!is_json)
		print_text(&proof, rc, text);
	if (rc == PROVE_UNKNOWN)
		return command_fail(COMMAND_FAILED,
			"doctor: it could not be run: no GPU answers, or it has no memory left");
	if (fflush(stdout))
		return command_fail(COMMAND_FAILED, "stdout: %s", strerror(errno));
	return rc == PROVE_PASSED ? COMMAND_OK : COMMAND_FAILED;
}
