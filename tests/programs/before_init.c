/* Calls every entry of the driver before cuInit and prints what it says and whether it wrote to its
 * arguments' memory.
 *
 *   before_init SPEC MS init           waits, then calls cuInit alone
 *   before_init SPEC MS dlsym|address  waits, then calls the entries that SPEC (driver_api.tsv)
 *                                      lists, found by dlsym or by cuGetProcAddress
 *   before_init SPEC MS HOW init       then cuInit and cuDeviceGetCount too */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORDS 11
#define BLOCK 4096
#define LIMIT_S 60
#define LINE_MAX_SIZE 512

typedef int (*entry_t)(
	void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);

/* The export table that may be asked for before cuInit without ending what is done ahead. */
static const unsigned char early_table[] = {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9,
	0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9};

static void call(const char *name, void *address)
{
	static char blocks[WORDS][BLOCK];
	int written = 0, with_zeros, rc;
	entry_t entry;

	*(void **)&entry = address;
	if (!entry) {
		printf("%s is absent\n", name);
		return;
	}
	memset(blocks, 0, sizeof(blocks));
	if (!strcmp(name, "cuGetExportTable"))
		memcpy(blocks[1], early_table, sizeof(early_table));
	rc = entry(blocks[0], blocks[1], blocks[2], blocks[3], blocks[4], blocks[5], blocks[6],
		blocks[7], blocks[8], blocks[9], blocks[10]);
	for (size_t i = 0; i < sizeof(blocks); i++)
		written += blocks[i / BLOCK][i % BLOCK] != 0;
	with_zeros = entry(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	printf("%s %d %d%s\n", name, rc, with_zeros, written ? " wrote" : "");
}

static void call_all(const char *spec, const char *how, void *driver)
{
	int (*find)(const char *, void **, int, uint64_t, int *);
	FILE *file = fopen(spec, "re");
	char line[LINE_MAX_SIZE];

	*(void **)&find = dlsym(driver, "cuGetProcAddress_v2");
	if (!file || !fgets(line, sizeof(line), file))
		exit(2);
	while (fgets(line, sizeof(line), file)) {
		const char *name = strtok(line, "\t"), *symbol = strtok(NULL, "\t");
		void *address = NULL;

		if (!strcmp(symbol, "cuInit"))
			continue;
		if (!strcmp(how, "dlsym"))
			address = dlsym(driver, symbol);
		else
			find(name, &address, 13000, 0, NULL);
		call(symbol, address);
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	int (*init)(unsigned int), (*count)(int *), number = -1;
	long ms = argc > 3 ? atol(argv[2]) : 0;
	void *driver;

	alarm(LIMIT_S);
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (argc < 4 || !driver)
		return 77;
	if (strcmp(argv[3], "init"))
		call_all(argv[1], argv[3], driver);
	if (strcmp(argv[argc - 1], "init"))
		return 0;
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&count = dlsym(driver, "cuDeviceGetCount");
	printf("cuInit %d, ", init(0));
	printf("count %d: ", count(&number));
	printf("%d\n", number);
	return 0;
}
