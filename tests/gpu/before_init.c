/* before_init: what every entry of the driver's interface answers before anyone has initialised it.
 *
 * A program of its own for a GPU machine (tools/gpu-check before-init); links nothing of Hearth.
 * Each entry is called in children of its own that open the driver themselves, so that no call
 * sees what another did: once with all arguments 0, once with every argument a pointer to 64 KiB
 * of zeroed memory of its own. It must never call an entry in the parent.
 *
 * Usage: before_init DRIVER SPEC [JOBS]. Prints a table on stdout: abi_symbol, zero, scratch; each
 * answer is the CUresult, or signal:N, timeout, absent (no such entry), skipped (not called). */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	ENTRIES_MAX = 1024,
	NAME_MAX_BYTES = 96,
	ARGUMENTS = 16, /* the longest entry has 16 */
	SCRATCH_BYTES = 64 * 1024,
	JOBS_MAX = 64,
	CALL_SECONDS = 2,
	EXIT_ABSENT = 77,
	EXIT_NO_DRIVER = 78,
};

enum way { ZERO, SCRATCH, WAYS };

struct answer {
	int rc;
	int answered; /* the call came back */
};

static char names[ENTRIES_MAX][NAME_MAX_BYTES];
static int name_count;
static struct answer (*answers)[WAYS];  /* shared with the children */
static int statuses[ENTRIES_MAX][WAYS]; /* as waitpid says; -1 = skipped */
static unsigned char scratch[ARGUMENTS][SCRATCH_BYTES];

typedef int (*entry_function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
	uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
	uintptr_t, uintptr_t);

static int read_names(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[512];

	if (!file) {
		fprintf(stderr, "before_init: cannot open %s\n", path);
		return -1;
	}
	while (fgets(line, sizeof(line), file)) {
		char public_name[NAME_MAX_BYTES];

		if (name_count == ENTRIES_MAX ||
			sscanf(line, "%95s %95s", public_name, names[name_count]) != 2) {
			fprintf(stderr, "before_init: %s: cannot read line %d\n", path,
				name_count + 1);
			fclose(file);
			return -1;
		}
		if (strcmp(names[name_count], "abi_symbol"))
			name_count++;
	}
	fclose(file);
	return 0;
}

/* Multicast objects reach past this machine's GPU: never called, not even uninitialised. */
static int is_skipped(const char *name)
{
	return !strncmp(name, "cuMulticast", strlen("cuMulticast"));
}

static void call_entry(const char *driver, int entry, enum way way)
{
	uintptr_t a[ARGUMENTS] = {0};
	entry_function function;
	int null = open("/dev/null", O_RDWR);
	void *handle;
	int rc;

	alarm(CALL_SECONDS);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	handle = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		_exit(EXIT_NO_DRIVER);
	*(void **)&function = dlsym(handle, names[entry]);
	if (!function)
		_exit(EXIT_ABSENT);
	for (int i = 0; way == SCRATCH && i < ARGUMENTS; i++)
		a[i] = (uintptr_t)scratch[i];
	rc = function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
		a[12], a[13], a[14], a[15]);
	answers[entry][way] = (struct answer){.rc = rc, .answered = 1};
	_exit(0);
}

static void print_answer(int entry, enum way way)
{
	int status = statuses[entry][way];

	if (status == -1)
		printf("\tskipped");
	else if (answers[entry][way].answered)
		printf("\t%d", answers[entry][way].rc);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		printf("\ttimeout");
	else if (WIFSIGNALED(status))
		printf("\tsignal:%d", WTERMSIG(status));
	else if (WEXITSTATUS(status) == EXIT_ABSENT)
		printf("\tabsent");
	else if (WEXITSTATUS(status) == EXIT_NO_DRIVER)
		printf("\tno-driver");
	else
		printf("\texit:%d", WEXITSTATUS(status));
}

int main(int argc, char **argv)
{
	int jobs = argc > 3 ? atoi(argv[3]) : 8, running = 0, next = 0;
	struct {
		pid_t pid;
		int number;
	} children[JOBS_MAX] = {{0, 0}};

	if (argc < 3 || jobs < 1 || jobs > JOBS_MAX) {
		fprintf(stderr, "usage: before_init DRIVER SPEC [JOBS (1..%d)]\n", JOBS_MAX);
		return 2;
	}
	if (read_names(argv[2]) < 0)
		return 1;
	answers = mmap(NULL, sizeof(struct answer[ENTRIES_MAX][WAYS]), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (answers == MAP_FAILED) {
		fprintf(stderr, "before_init: no memory for %d answers\n", ENTRIES_MAX);
		return 1;
	}
	while (next < name_count * WAYS || running) {
		if (next < name_count * WAYS && is_skipped(names[next / WAYS])) {
			statuses[next / WAYS][next % WAYS] = -1;
			next++;
			continue;
		}
		if (next < name_count * WAYS && running < jobs) {
			int slot = 0;

			while (children[slot].pid)
				slot++;
			children[slot].number = next;
			children[slot].pid = fork();
			if (children[slot].pid == 0)
				call_entry(argv[1], next / WAYS, next % WAYS);
			if (children[slot].pid < 0) {
				fprintf(stderr, "before_init: cannot fork for %s\n",
					names[next / WAYS]);
				return 1;
			}
			running++;
			next++;
			continue;
		}
		int status;
		pid_t pid = wait(&status);

		for (int slot = 0; slot < jobs; slot++) {
			if (children[slot].pid != pid)
				continue;
			statuses[children[slot].number / WAYS][children[slot].number % WAYS] =
				status;
			children[slot].pid = 0;
			running--;
		}
	}
	printf("abi_symbol\tzero\tscratch\n");
	for (int entry = 0; entry < name_count; entry++) {
		printf("%s", names[entry]);
		print_answer(entry, ZERO);
		print_answer(entry, SCRATCH);
		printf("\n");
	}
	return 0;
}
