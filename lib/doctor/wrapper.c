/* The table of wrappers. Runs in the hearth tool. Facts from the programs' man pages. */
#include "doctor/wrapper.h"

#include <stdbool.h>
#include <string.h>

static const char *const timeout_options[] = {"--kill-after", "--signal", NULL};
static const char *const nice_options[] = {"--adjustment", NULL};
static const char *const stdbuf_options[] = {"--input", "--output", "--error", NULL};
static const char *const numactl_options[] = {
	"--interleave", "--preferred", "--membind", "--cpunodebind", "--physcpubind", NULL};
static const char *const ionice_options[] = {"--class", "--classdata", NULL};
static const char *const time_options[] = {"--format", "--output", NULL};
static const char *const sudo_options[] = {"--user", "--group", "--host", "--prompt", "--role",
	"--type", "--chdir", "--chroot", "--close-from", "--command-timeout", NULL};
static const char *const setpriv_options[] = {"--reuid", "--regid", "--ruid", "--euid", "--rgid",
	"--egid", "--groups", "--inh-caps", "--ambient-caps", "--bounding-set", "--securebits",
	"--pdeathsig", "--selinux-label", "--apparmor-profile", NULL};
static const char *const hearth_options[] = {"--task", "--log", NULL};
static const char *const loader_options[] = {"--library-path", "--preload", "--audit", "--argv0",
	"--inhibit-rpath", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask", NULL};

static const struct wrapper wrappers[] = {
	{"env", WRAPPER_ENV, "uC", NULL, 0},
	{"timeout", WRAPPER_PASSES, "ks", timeout_options, 1},
	{"nice", WRAPPER_PASSES, "n", nice_options, 0},
	{"nohup", WRAPPER_PASSES, "", NULL, 0},
	{"setsid", WRAPPER_PASSES, "", NULL, 0},
	{"stdbuf", WRAPPER_PASSES, "ioe", stdbuf_options, 0},
	{"taskset", WRAPPER_PASSES, "", NULL, 1},
	{"numactl", WRAPPER_PASSES, "impNC", numactl_options, 0},
	{"chrt", WRAPPER_PASSES, "TPD", NULL, 1},
	{"ionice", WRAPPER_PASSES, "cn", ionice_options, 0},
	{"time", WRAPPER_PASSES, "fo", time_options, 0},
	{"prlimit", WRAPPER_PASSES, "", NULL, 0},
	{"setpriv", WRAPPER_PASSES, "", setpriv_options, 0},
	{"unshare", WRAPPER_PASSES, "SGRw", NULL, 0},
	{"ld-linux-x86-64.so.2", WRAPPER_LOADER, "", loader_options, 0},
	{"ld.so", WRAPPER_LOADER, "", loader_options, 0},
	{"hearth", WRAPPER_HEARTH, "", hearth_options, 1},
	{"sudo", WRAPPER_LOSES, "ughpCrtTDR", sudo_options, 0},
	{"doas", WRAPPER_LOSES, "uC", NULL, 0},
	{"pkexec", WRAPPER_LOSES, "", sudo_options, 0},
	{"systemd-run", WRAPPER_AWAY, "", NULL, 0},
	{"ssh", WRAPPER_AWAY, "", NULL, 0},
	{"docker", WRAPPER_AWAY, "", NULL, 0},
	{"podman", WRAPPER_AWAY, "", NULL, 0},
	{"nerdctl", WRAPPER_AWAY, "", NULL, 0},
	{"kubectl", WRAPPER_AWAY, "", NULL, 0},
	{"singularity", WRAPPER_AWAY, "", NULL, 0},
	{"apptainer", WRAPPER_AWAY, "", NULL, 0},
	{"chroot", WRAPPER_AWAY, "", NULL, 0},
	{"snap", WRAPPER_AWAY, "", NULL, 0},
	{"flatpak", WRAPPER_AWAY, "", NULL, 0},
	{"srun", WRAPPER_LAUNCHER, "", NULL, 0},
	{"mpirun", WRAPPER_LAUNCHER, "", NULL, 0},
	{"mpiexec", WRAPPER_LAUNCHER, "", NULL, 0},
	{"xargs", WRAPPER_LAUNCHER, "", NULL, 0},
	{"parallel", WRAPPER_LAUNCHER, "", NULL, 0},
	{"make", WRAPPER_LAUNCHER, "", NULL, 0},
	{"uv", WRAPPER_LAUNCHER, "", NULL, 0},
	{"uvx", WRAPPER_LAUNCHER, "", NULL, 0},
	{"pixi", WRAPPER_LAUNCHER, "", NULL, 0},
	{"micromamba", WRAPPER_LAUNCHER, "", NULL, 0},
	{"mise", WRAPPER_LAUNCHER, "", NULL, 0},
	{"just", WRAPPER_LAUNCHER, "", NULL, 0},
	{"ctest", WRAPPER_LAUNCHER, "", NULL, 0},
	{"busybox", WRAPPER_LAUNCHER, "", NULL, 0},
	{"gdb", WRAPPER_LAUNCHER, "", NULL, 0},
	{"strace", WRAPPER_LAUNCHER, "", NULL, 0},
	{"ltrace", WRAPPER_LAUNCHER, "", NULL, 0},
	{"perf", WRAPPER_LAUNCHER, "", NULL, 0},
	{"valgrind", WRAPPER_LAUNCHER, "", NULL, 0},
	{"su", WRAPPER_SWITCH, "", NULL, 0},
	{"runuser", WRAPPER_SWITCH, "", NULL, 0},
	{"nsys", WRAPPER_TOOL, "", NULL, 0},
	{"ncu", WRAPPER_TOOL, "", NULL, 0},
	{"nvprof", WRAPPER_TOOL, "", NULL, 0},
	{"compute-sanitizer", WRAPPER_TOOL, "", NULL, 0},
	{"cuda-memcheck", WRAPPER_TOOL, "", NULL, 0},
	{"cuda-gdb", WRAPPER_TOOL, "", NULL, 0},
	{"sh", WRAPPER_SHELL, "", NULL, 0},
	{"bash", WRAPPER_SHELL, "", NULL, 0},
	{"dash", WRAPPER_SHELL, "", NULL, 0},
	{"zsh", WRAPPER_SHELL, "", NULL, 0},
	{"ksh", WRAPPER_SHELL, "", NULL, 0},
	{"fish", WRAPPER_SHELL, "", NULL, 0},
};

const struct wrapper *wrapper_find(const char *base_name)
{
	for (size_t i = 0; i < sizeof(wrappers) / sizeof(wrappers[0]); i++)
		if (!strcmp(wrappers[i].name, base_name))
			return &wrappers[i];
	return NULL;
}

/* Whether this option's value is the next word. */
static bool takes_next(const struct wrapper *wrapper, const char *option)
{
	if (option[1] == '-') {
		for (size_t i = 0; wrapper->long_with_value && wrapper->long_with_value[i]; i++)
			if (!strcmp(option, wrapper->long_with_value[i]))
				return true;
		return false;
	}
	for (const char *letter = option + 1; *letter; letter++)
		if (strchr(wrapper->with_value, *letter))
			return !letter[1]; /* else the value is the rest of this word */
	return false;
}

size_t wrapper_skip(const struct wrapper *wrapper, char *const *words)
{
	unsigned operands = wrapper->operands;
	bool are_options_over = false;
	size_t at = 1;

	for (; words[at]; at++) {
		const char *word = words[at];

		if (!are_options_over && !strcmp(word, "--")) {
			are_options_over = true;
		} else if (!are_options_over && word[0] == '-' && word[1]) {
			if (takes_next(wrapper, word) && words[at + 1])
				at++;
		} else if (wrapper->kind == WRAPPER_LOSES && strchr(word, '=')) {
			continue; /* sudo NAME=VALUE */
		} else if (operands) {
			operands--;
		} else {
			return at;
		}
	}
	return 0;
}
