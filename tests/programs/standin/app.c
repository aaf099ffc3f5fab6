/* A program with a stand-in runtime: standin_app has it as a library, standin_app_static inside.
 *
 *   standin_app [count|work] [after=MS] [device=N] [plugin=FILE] [hold]
 *
 * count: only the number of devices. plugin: a shared library with a runtime of its own, used after
 * ours, RTLD_LOCAL. hold: print "ready", wait for the end of standard input. */
#include "runtime.h"
#include "work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int use_plugin(const char *path, int device)
{
	void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	int (*run)(int device);

	if (!plugin) {
		printf("no plugin: %s\n", dlerror());
		return 1;
	}
	*(void **)&run = dlsym(plugin, "standin_plugin_run");
	return run ? run(device) : 1;
}

static int run(const char *how_far, const char *plugin, int device)
{
	int count, rc = cudaGetDeviceCount(&count);

	printf("devices %d, %d\n", rc, count);
	if (rc)
		return 1;
	if (!strcmp(how_far, "work") && work_run("app", device))
		return 1;
	return plugin ? use_plugin(plugin, device) : 0;
}

int main(int argc, char **argv)
{
	const char *how_far = "work", *plugin = NULL;
	int is_held = 0, device = 0, rc;
	long after_ms = 0;
	char byte;

	for (int i = 1; i < argc; i++) {
		if (!strncmp(argv[i], "after=", 6))
			after_ms = atol(argv[i] + 6);
		else if (!strncmp(argv[i], "device=", 7))
			device = atoi(argv[i] + 7);
		else if (!strncmp(argv[i], "plugin=", 7))
			plugin = argv[i] + 7;
		else if (!strcmp(argv[i], "hold"))
			is_held = 1;
		else
			how_far = argv[i];
	}
	nanosleep(&(struct timespec){after_ms / 1000, after_ms % 1000 * 1000000}, NULL);
	rc = run(how_far, plugin, device);
	if (is_held) {
		printf("ready\n");
		fflush(stdout);
		while (read(STDIN_FILENO, &byte, 1) > 0)
			;
	}
	return rc;
}
