/* `hearth jupyter`: has a Jupyter kernel start under Hearth, or as before. Changes one file, its
 * kernelspec, and keeps what was there beside it. */
#include "command.h"
#include "launch/kernelspec.h"
#include "launch/wrap.h"
#include "options.h"
#include "spare/imports.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a kernel's start takes its time for: the modules that one had in the end, with ipykernel
 * 7.4. */
#define KERNEL_IMPORTS                                                                             \
	"ipykernel.kernelapp,ipykernel.ipkernel,ipykernel.debugger,IPython.core.completerlib,"     \
	"IPython.core.oinspect,IPython.extensions.storemagic,tornado.platform.asyncio,psutil"

static int find(const char *kernel, bool or_backup, char ret_folder[PATH_MAX])
{
	int rc = kernelspec_find(kernel, or_backup, ret_folder);

	if (rc == -EINVAL)
		return command_fail(COMMAND_USAGE, "--kernel: '%s' is no kernel's name", kernel);
	if (rc)
		return command_fail(COMMAND_FAILED,
			"no kernelspec '%s' is to be found: `jupyter kernelspec list` shows those "
			"there are; for an environment that is not active, set VIRTUAL_ENV to it",
			kernel);
	return COMMAND_OK;
}

static int tell(const char *what, const char *folder, int rc)
{
	if (rc == -EPROTO)
		return command_fail(
			COMMAND_FAILED, "%s/" KERNELSPEC_NAME ": not a kernelspec", folder);
	if (rc < 0)
		return command_fail(
			COMMAND_FAILED, "%s/" KERNELSPEC_NAME ": %s", folder, strerror(-rc));
	printf("%s/" KERNELSPEC_NAME ": %s\n", folder, what);
	return fflush(stdout) ? COMMAND_FAILED : COMMAND_OK;
}

static int install(const char *folder, const char *imports)
{
	char self[PATH_MAX], library[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct wrap_error error;
	int rc;

	/* What would keep the kernel from starting by `hearth run` is better said now. */
	if (wrap_find_library(sizeof(library), library, &error) ||
		wrap_set_preload(library, &error))
		return command_fail(COMMAND_FAILED, "%s", error.text);
	if (length < 0)
		return command_fail(COMMAND_FAILED, "/proc/self/exe: %s", strerror(errno));
	self[length] = '\0';
	rc = kernelspec_wrap(folder, self, imports);
	return tell(rc == KERNELSPEC_SAME ? "starts its kernel under Hearth already"
					  : "starts its kernel under Hearth from now on",
		folder, rc);
}

static int uninstall(const char *folder)
{
	int rc = kernelspec_unwrap(folder);

	return tell(rc == KERNELSPEC_SAME     ? "was not changed by Hearth"
		    : rc == KERNELSPEC_EDITED ? "starts its kernel without Hearth; what was edited "
						"meanwhile has stayed"
					      : "is as it was",
		folder, rc);
}

static int run(int argc, char **argv)
{
	const char *kernel = "python3", *imports = NULL;
	bool is_install, is_spare = false;
	const struct option_row rows[] = {{.name = "kernel", .text = &kernel},
		{.name = "spare", .flag = &is_spare}, {.name = "import", .text = &imports}, {0}};
	char *names[IMPORTS_MOST + 1], all[2 * PATH_MAX];
	char folder[PATH_MAX];
	char **words;
	int status = options_take(&command_jupyter, rows, WORDS_ANY, argc, argv, &words);

	if (status != OPTIONS_TAKEN)
		return status;
	if (!words[0]) {
		command_fail(0, "jupyter: say install or uninstall");
		return command_usage(&command_jupyter);
	}
	if (strcmp(words[0], "install") && strcmp(words[0], "uninstall")) {
		command_fail(0, "jupyter: '%s' is neither install nor uninstall", words[0]);
		return command_usage(&command_jupyter);
	}
	if (words[1]) {
		command_fail(0, "jupyter: '%s' is not expected", words[1]);
		return command_usage(&command_jupyter);
	}
	if (imports && !is_spare)
		return command_fail(COMMAND_USAGE, "--import: only with --spare");
	if (imports_split(imports, names) || strlen(imports ? imports : "") > PATH_MAX)
		return command_fail(COMMAND_USAGE, "--import: '%s' is no list of modules", imports);
	snprintf(all, sizeof(all), KERNEL_IMPORTS "%s%s", imports && *imports ? "," : "",
		imports ? imports : "");
	is_install = !strcmp(words[0], "install");
	status = find(kernel, !is_install, folder);
	if (status)
		return status;
	return is_install ? install(folder, is_spare ? all : NULL) : uninstall(folder);
}

const struct command command_jupyter = {
	.name = "jupyter",
	.arguments = "install [--spare [--import MODULE,...]] | uninstall [--kernel NAME]",
	.summary = "Have a Jupyter kernel start under Hearth, or as before",
	.help = "  install        wrap the kernelspec: its kernels start by `hearth run`\n"
		"  uninstall      put back what was there\n"
		"  --kernel NAME  which one (default: python3)\n"
		"  --spare        restart its kernels by way of spares: beside each running one "
		"waits "
		"a\n"
		"                 python that has imported what a kernel needs (`hearth spare "
		"status`)\n"
		"  --import MODULE,...  what else it has imported, as torch\n"
		"\n"
		"In reports the kernels of a notebook have its name for their task, and its "
		"restarts are\n"
		"shown together.\n",
	.run = run,
};
