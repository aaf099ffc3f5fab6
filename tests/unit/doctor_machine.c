/* What nvidia-smi says about the GPUs, or doesn't. */
#include "doctor/machine.h"

#include "base/clock.h"
#include "doctor/inquire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 128

static char root[PATH_SIZE];

static void put(const char *path, const char *text, mode_t mode)
{
	char whole[2 * PATH_SIZE];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(whole, 0755);
		*slash = '/';
	}
	file = fopen(whole, "we");
	cr_assert_not_null(file);
	fputs(text, file);
	fclose(file);
	cr_assert_eq(chmod(whole, mode), 0);
}

static void make_root(void)
{
	strcpy(root, "/tmp/hearth-unit-XXXXXX");
	cr_assert_not_null(mkdtemp(root));
	put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  1.2\n",
		0444);
}

static void remove_root(void)
{
	char command[2 * PATH_SIZE];

	snprintf(command, sizeof(command), "rm -r %s", root);
	cr_assert_eq(system(command), 0);
}

/* Examines the root with a nvidia-smi that is this script. */
static struct findings examine(const char *script)
{
	struct findings findings = {0};
	char smi[PATH_SIZE + 8];
	struct scene scene;

	put("smi", script, 0755);
	snprintf(smi, sizeof(smi), "%s/smi", root);
	cr_assert_eq(scene_init(root, &scene), 0);
	scene.nvidia_smi = smi;
	machine_examine(&scene, &findings);
	scene_done(&scene);
	return findings;
}

TestSuite(doctor_machine, .init = make_root, .fini = remove_root);

Test(doctor_machine, tells_the_persistence_mode_of_each_gpu)
{
	struct findings findings = examine("#!/bin/sh\necho '0, Enabled, Default'\n"
					   "echo '1, Disabled, Default'\n"
					   "echo '2, Disabled, Default'\n");
	const struct finding *first = findings_get(&findings, "persistence");

	cr_assert_not_null(first);
	cr_expect_eq(first[0].severity, SEVERITY_OK);
	cr_expect_str_eq(first[0].text, "on for GPU 0");
	cr_expect_eq(first[1].severity, SEVERITY_WARNING);
	cr_expect_not_null(strstr(first[1].text, "off for GPU 1, 2:"));
	cr_expect_not_null(strstr(first[1].remedy, "nvidia-smi -pm 1"));
	cr_expect_eq(findings.items + findings.count - first, 2, "one warning for all of them");
	cr_expect_null(findings_get(&findings, "compute-mode"));
	findings_done(&findings);
}

Test(doctor_machine, warns_of_modes_in_which_the_keeper_stays_away)
{
	struct findings findings = examine("#!/bin/sh\necho '0, Enabled, Exclusive_Process'\n");
	const struct finding *mode = findings_get(&findings, "compute-mode");

	cr_assert_not_null(mode);
	cr_expect_eq(mode->severity, SEVERITY_WARNING);
	findings_done(&findings);
}

Test(doctor_machine, says_so_when_nvidia_smi_fails_or_babbles)
{
	struct findings findings = examine("#!/bin/sh\nexit 9\n");
	const struct finding *mode = findings_get(&findings, "persistence");

	cr_assert_not_null(mode);
	cr_expect_not_null(strstr(mode->text, "not known"));
	findings_done(&findings);
	findings = examine("#!/bin/sh\nhead -c 100000 /dev/zero\necho ,,,,\n");
	findings_done(&findings);
}

Test(doctor_machine, an_answer_that_does_not_come_is_not_waited_for)
{
	const char *silent[] = {"/bin/sleep", "100", NULL};
	const char *lingering[] = {"/bin/sh", "-c", "exec >&-; sleep 100", NULL};
	uint64_t start = clock_monotonic_us();
	char text[16];

	cr_expect_eq(inquire(silent, 100, text, sizeof(text)), -ETIME);
	cr_expect_eq(inquire(lingering, 100, text, sizeof(text)), -ETIME);
	cr_expect_lt(clock_monotonic_us() - start, 10000000);
}

Test(doctor_machine, takes_what_fits_of_an_answer)
{
	const char *words[] = {"/bin/echo", "0123456789", NULL};
	const char *nothing[] = {"/nowhere/program", NULL};
	char text[5];

	cr_expect_eq(inquire(words, 10000, text, sizeof(text)), 0);
	cr_expect_str_eq(text, "0123");
	cr_expect_eq(inquire(nothing, 10000, text, sizeof(text)), 1);
	cr_expect_str_eq(text, "");
}
