/* Reading the stored verdict of the undo self-test. Runs in the hearth tool; calls no driver. */
#include "doctor/proof.h"

#include "base/settings.h"
#include "base/state_dir.h"
#include "doctor/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void proof_subject(const struct scene *scene, struct proof *ret_proof)
{
	struct proof proof = {0};
	struct settings settings;
	char *path;
	int fd;

	settings_read(&settings);
	if (state_dir_path(&settings, proof.state_dir, sizeof(proof.state_dir)))
		proof.state_dir[0] = '\0';
	if (machine_find_driver(scene, &path) == MACHINE_DRIVER) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		/* One without a build-id is as good as none: nothing can be stored for it. */
		if (fd >= 0 && !build_id_of_file(fd, &proof.id))
			snprintf(proof.driver, sizeof(proof.driver), "%s", path);
		if (fd >= 0)
			close(fd);
		free(path);
	}
	*ret_proof = proof;
}

size_t proof_culprit(const char *details, const char **ret_line)
{
	while (*details) {
		size_t length = strcspn(details, "\n");
		const char *result = memchr(details, ':', length);

		if (result && strncmp(result, ": passed", strlen(": passed"))) {
			*ret_line = details;
			return length;
		}
		details += length + (details[length] == '\n');
	}
	return 0;
}

void proof_judge(enum verdict verdict, const char *details, struct findings *findings)
{
	const char *line = "no reason stored";
	size_t length;

	switch (verdict) {
	case VERDICT_PASSED:
		findings_add(findings, "speculation", SEVERITY_OK,
			"proven: what is done ahead can be undone with this driver");
		return;
	case VERDICT_FAILED:
		length = proof_culprit(details, &line);
		findings_add(findings, "speculation", SEVERITY_WARNING,
			"nothing is done ahead, since it could not be undone with this driver: "
			"%.*s",
			(int)(length ? length : strlen(line)), line);
		findings_remedy(findings, "another driver build, or `hearth doctor --prove` to try "
					  "it again");
		return;
	case VERDICT_NONE:
		findings_add(findings, "speculation", SEVERITY_NOTE,
			"nothing is done ahead before it is proven that it can be undone with this "
			"driver; hearthd proves it when no program has run for a while");
		findings_remedy(findings, "hearth doctor --prove does it now");
	}
}

void proof_examine(const struct scene *scene, struct findings *findings)
{
	char details[VERDICT_DETAILS_MAX];
	struct proof proof;
	enum verdict verdict;

	proof_subject(scene, &proof);
	if (!proof.driver[0])
		return;
	verdict = verdict_find(proof.state_dir, &proof.id, details);
	proof_judge(verdict, details, findings);
}
