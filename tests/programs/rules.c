/* Runs the sections of rules.h, or those that its arguments name, each in a child of its own. */
#include "rules.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECTION_SECONDS 60

static const struct {
	const char *name;
	void (*run)(void);
} sections[] = {
#define SECTION(name) {#name, rules_##name},
	SECTION(lookup) SECTION(errors) SECTION(before) SECTION(init) SECTION(visible) SECTION(
		late) SECTION(fork) SECTION(copy) SECTION(exit) SECTION(attributes) SECTION(device)
		SECTION(primary) SECTION(reset) SECTION(flags) SECTION(stack) SECTION(created)
			SECTION(old) SECTION(memory) SECTION(module) SECTION(library) SECTION(eager)
				SECTION(launch) SECTION(stream) SECTION(event) SECTION(capture)
					SECTION(modes) SECTION(graph)
#undef SECTION
};

static void *driver;

void *rules_entry(const char *symbol)
{
	if (!driver)
		driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver) {
		printf("no driver: %s\n", dlerror());
		exit(77);
	}
	return dlsym(driver, symbol);
}

int rules_call(const char *symbol, const word w[RULES_WORDS])
{
	int (*entry)(word, word, word, word, word, word, word, word, word, word, word);

	*(void **)&entry = rules_entry(symbol);
	if (!entry)
		return -1;
	return entry(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10]);
}

word rules_context(void)
{
	word context = 0;

	if (CALL(cuInit, 0) || CALL(cuDevicePrimaryCtxRetain, W(&context), 0) ||
		CALL(cuCtxSetCurrent, context)) {
		printf("no context\n");
		exit(1);
	}
	return context;
}

static int run(int section)
{
	int status;
	pid_t pid;

	printf("== %s\n", sections[section].name);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		alarm(SECTION_SECONDS);
		sections[section].run();
		exit(0);
	}
	waitpid(pid, &status, 0);
	if (status)
		printf("ended with %#x\n", status);
	return status;
}

int main(int argc, char **argv)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		int is_wanted = argc == 1;

		for (int j = 1; j < argc; j++)
			is_wanted |= !strcmp(argv[j], sections[i].name);
		if (is_wanted)
			failed |= run((int)i);
	}
	return failed ? 1 : 0;
}
