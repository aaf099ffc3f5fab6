/* Asks for driver entries by one route and calls each with a canary, so that the driver says which
 * row was reached. One line for each question:
 *
 *   lookups dlsym LIBRARY SYMBOLS         symbol code
 *   lookups gpa|gpa2|self|self2 LIBRARY NAMES VERSIONS    name version flags rc status code
 *
 * gpa and gpa2 are cuGetProcAddress and _v2 from dlsym; self and self2 the same asked for through
 * _v2. SYMBOLS and NAMES are files with one name a line; VERSIONS is a list with commas. `init`
 * as the last argument calls cuInit and makes a context first, so that every handler is armed. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CANARY UINT64_C(0xca11ab1e)

typedef int entry(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
	uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
typedef int ask_v1(const char *, void **, int, uint64_t);
typedef int ask_v2(const char *, void **, int, uint64_t, int *);

static void *library;
static ask_v1 *v1;
static ask_v2 *v2;

/* Entries without an argument cannot carry the canary: what they answer is compared instead. */
static int call(void *pointer)
{
	entry *function = (entry *)pointer;

	return function(
		CANARY, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115, 116);
}

/* An entry that no specification knows writes through its first argument. */
static int call_extra(void *pointer)
{
	int written = 0;
	int (*function)(int *) = (int (*)(int *))pointer;

	return function(&written) + written;
}

static void *find(const char *symbol)
{
	void *pointer = dlsym(library, symbol);

	if (!pointer) {
		printf("%s is not there\n", symbol);
		exit(1);
	}
	return pointer;
}

static void initialise(void)
{
	int (*init)(unsigned int) = (int (*)(unsigned int))find("cuInit");
	int (*retain)(void **, int) = (int (*)(void **, int))find("cuDevicePrimaryCtxRetain");
	int (*make_current)(void *) = (int (*)(void *))find("cuCtxSetCurrent");
	void *context = NULL;
	int rc = init(0);

	if (!rc)
		rc = retain(&context, 0);
	if (!rc)
		rc = make_current(context);
	printf("init %d\n", rc);
}

static void ask(const char *name, int version, uint64_t flags)
{
	void *pointer = NULL;
	int status = -1;
	int rc = v2 ? v2(name, &pointer, version, flags, &status)
		    : v1(name, &pointer, version, flags);

	printf("%s %d %d rc %d status %d", name, version, (int)flags, rc, status);
	if (!pointer)
		printf(" none\n");
	else if (!strncmp(name, "cuExtra", strlen("cuExtra")))
		printf(" extra %d\n", call_extra(pointer));
	else
		printf(" reached %d\n", call(pointer));
}

static void ask_all(const char *name, const char *versions)
{
	char copy[4096];

	snprintf(copy, sizeof(copy), "%s", versions);
	for (char *at = strtok(copy, ","); at; at = strtok(NULL, ","))
		for (uint64_t flags = 0; flags <= 2; flags++)
			ask(name, atoi(at), flags);
}

static void choose(const char *route)
{
	void *pointer = NULL;

	if (!strcmp(route, "gpa"))
		v1 = (ask_v1 *)find("cuGetProcAddress");
	else
		v2 = (ask_v2 *)find("cuGetProcAddress_v2");
	if (!strcmp(route, "self")) {
		v2("cuGetProcAddress", &pointer, 11030, 0, NULL);
		v1 = (ask_v1 *)pointer;
		v2 = NULL;
	} else if (!strcmp(route, "self2")) {
		v2("cuGetProcAddress", &pointer, 12000, 0, NULL);
		v2 = (ask_v2 *)pointer;
	}
}

int main(int argc, char **argv)
{
	char name[256];
	FILE *names;

	if (argc < 4 || !(names = fopen(argv[3], "r")))
		return 2;
	library = dlopen(argv[2], RTLD_NOW);
	if (!library) {
		printf("%s\n", dlerror());
		return 1;
	}
	if (!strcmp(argv[argc - 1], "init"))
		initialise();
	if (strcmp(argv[1], "dlsym"))
		choose(argv[1]);
	while (fscanf(names, "%255s", name) == 1) {
		if (v1 || v2)
			ask_all(name, argv[4]);
		else
			printf("%s reached %d\n", name, call(find(name)));
	}
	fclose(names);
	return 0;
}
