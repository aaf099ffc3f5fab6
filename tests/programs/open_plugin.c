/* Opens a plugin and runs its bound_report or, for a plugin without one, open_report:
 * open_plugin FILE [deepbind|global|new]. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	const char *how = argc > 2 ? argv[2] : "";
	int flags = RTLD_NOW;
	void *plugin;
	int (*report)(void);

	if (!strcmp(how, "deepbind"))
		flags |= RTLD_DEEPBIND;
	else if (!strcmp(how, "global"))
		flags |= RTLD_GLOBAL;
	plugin = strcmp(how, "new") ? dlopen(argv[1], flags) : dlmopen(LM_ID_NEWLM, argv[1], flags);
	if (!plugin) {
		printf("%s\n", dlerror());
		return 1;
	}
	report = (int (*)(void))dlsym(plugin, "bound_report");
	return report ? report() : 3;
}
