/* environment: changes a variable that the driver reads, at a moment of choice, and prints which
 * devices it then gets. Run by tools/gpu-check plain and under Hearth: what was done ahead under
 * another environment must not show.
 *
 * Usage: environment MOMENT NAME VALUE|- ...   (- unsets; several NAME VALUE pairs are allowed)
 *   start    before the driver is opened       lookup   300 ms after cuInit was looked up
 *   count    after a device count that was asked before cuInit
 *   init     after cuInit: too late for the driver */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_US = 300 * 1000, UUID_BYTES = 16 };

static char **pairs;

static void change_if(const char *moment, const char *now)
{
	if (strcmp(moment, now))
		return;
	for (char **pair = pairs; pair[0] && pair[1]; pair += 2) {
		if (!strcmp(pair[1], "-"))
			unsetenv(pair[0]);
		else
			setenv(pair[0], pair[1], 1);
	}
}

static void *entry(void *library, const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		printf("result no %s\n", name);
		exit(3);
	}
	return address;
}

int main(int argc, char **argv)
{
	const char *moment = argc > 1 ? argv[1] : "";
	int count = -7, rc;
	void *context = NULL;

	if (argc < 4) {
		fprintf(stderr, "usage: environment start|lookup|count|init NAME VALUE|- ...\n");
		return 2;
	}
	pairs = argv + 2;
	change_if(moment, "start");
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("result no driver\n");
		return 3;
	}
	int (*init)(unsigned) = entry(library, "cuInit");
	int (*get_count)(int *) = entry(library, "cuDeviceGetCount");
	int (*get_uuid)(unsigned char *, int) = entry(library, "cuDeviceGetUuid_v2");
	int (*retain)(void **, int) = entry(library, "cuDevicePrimaryCtxRetain");

	usleep(PAUSE_US);
	change_if(moment, "lookup");
	rc = get_count(&count);
	printf("result count before init %d %d\n", rc, count);
	change_if(moment, "count");
	printf("result cuInit %d\n", init(0));
	change_if(moment, "init");
	count = -7;
	rc = get_count(&count);
	printf("result count %d %d\n", rc, count);
	for (int device = 0; device < count; device++) {
		unsigned char uuid[UUID_BYTES] = {0};

		printf("result device %d %d ", device, get_uuid(uuid, device));
		for (int i = 0; i < UUID_BYTES; i++)
			printf("%02x", uuid[i]);
		printf("\n");
	}
	rc = retain(&context, 0);
	printf("result retain %d %s\n", rc, context ? "context" : "none");
	return 0;
}
