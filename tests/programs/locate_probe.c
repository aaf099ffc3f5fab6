/* Prints where the driver would be found: once by the loader itself, once by Hearth's own search.
 *
 *   locate_probe [PLUGIN]     on behalf of the program, or of a plugin (which does the dlopen) */
#include "driver/locate.h"

#include "base/env.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *open_function(const char *name, int flags);

int main(int argc, char **argv)
{
	open_function *open_library = (open_function *)dlopen;
	struct locate_request request = {.driver = env_get(ENV_HEARTH_DRIVER)};
	char path[PATH_MAX], real[PATH_MAX];
	struct link_map *map;

	if (argc > 1) {
		void *plugin = dlopen(argv[1], RTLD_NOW);

		open_library = plugin ? (open_function *)dlsym(plugin, "plugin_open") : NULL;
		if (!open_library)
			return 2;
		request.caller = (const void *)open_library;
	}
	printf("%s\n", !locate_driver(&request, path) && realpath(path, real) ? real : "none");
	map = open_library("libcuda.so.1", RTLD_LAZY);
	printf("%s\n", map && realpath(map->l_name, real) ? real : "none");
	return 0;
}
