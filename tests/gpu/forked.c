/* forked: leaves its process in one of the known ways, after more or less use of the driver, and
 * uses the driver on both sides. Run by tools/gpu-check plain and under Hearth: what was done ahead
 * in the parent must not show in the child, nor the other way round.
 *
 * Usage: forked BEFORE HOW
 *   BEFORE  nothing   the driver is not even opened
 *           lookup    cuInit was looked up 300 ms ago
 *           init      the program has called cuInit    context   and retained a context
 *           busy      a second thread is in driver calls all the time
 *   HOW     fork, clone (raw, like fork), vfork (the child only execs /bin/true), twice (a child of
 *           a child) */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAUSE_US = 300 * 1000, VALUE = 40961, CHILD_SECONDS = 20 };

static void *library;
static volatile int stop;

static void *entry(const char *name)
{
	void *address;

	if (!library)
		library = dlopen("libcuda.so.1", RTLD_NOW);
	address = library ? dlsym(library, name) : NULL;
	if (!address) {
		printf("result no %s\n", name);
		exit(3);
	}
	return address;
}

/* Descriptors of the driver's devices, and all others but the standard three. */
static void print_descriptors(const char *who)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *item;
	int devices = 0, others = 0;

	while (folder && (item = readdir(folder))) {
		char path[300], target[300];
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", item->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		if (length < 0 || atoi(item->d_name) <= STDERR_FILENO ||
			atoi(item->d_name) == dirfd(folder))
			continue;
		target[length] = '\0';
		if (!strncmp(target, "/dev/nvidia", strlen("/dev/nvidia")))
			devices++;
		else
			others++;
	}
	if (folder)
		closedir(folder);
	printf("result %s has %d device descriptors, %d others\n", who, devices, others);
}

/* A child's descriptors are as natively: at once after a fork, after its first call where libc and
 * so Hearth were not told of it (clone). The parent's are not compared: what is done ahead has the
 * driver's descriptors open earlier. */
enum descriptors { DESCRIPTORS_UNSEEN, DESCRIPTORS_AT_ONCE, DESCRIPTORS_AFTER_CALL };

static void use(const char *who, enum descriptors descriptors)
{
	int (*init)(unsigned) = entry("cuInit");
	int (*get_count)(int *) = entry("cuDeviceGetCount");
	int (*retain)(void **, int) = entry("cuDevicePrimaryCtxRetain");
	int (*get_state)(int, unsigned *, int *) = entry("cuDevicePrimaryCtxGetState");
	int (*set_current)(void *) = entry("cuCtxSetCurrent");
	int (*allocate)(unsigned long *, size_t) = entry("cuMemAlloc_v2");
	int (*copy_in)(unsigned long, const void *, size_t) = entry("cuMemcpyHtoD_v2");
	int (*copy_out)(void *, unsigned long, size_t) = entry("cuMemcpyDtoH_v2");
	int rc[6], count = -7, value = VALUE, back = 0, active = -7;
	unsigned long memory = 0;
	unsigned flags = 77;
	void *context = NULL;

	if (descriptors == DESCRIPTORS_AT_ONCE)
		print_descriptors(who);
	rc[0] = init(0);
	rc[1] = get_count(&count);
	if (descriptors == DESCRIPTORS_AFTER_CALL && rc[0])
		print_descriptors(who);
	rc[2] = get_state(0, &flags, &active);
	rc[3] = retain(&context, 0);
	rc[4] = set_current(context);
	rc[5] = allocate(&memory, sizeof(value));
	if (!rc[5]) {
		copy_in(memory, &value, sizeof(value));
		copy_out(&back, memory, sizeof(back));
	}
	printf("result %s init %d count %d %d state %d %u %d retain %d set %d alloc %d value %s\n",
		who, rc[0], rc[1], count, rc[2], flags, active, rc[3], rc[4], rc[5],
		back == value ? "right" : "none");
	fflush(stdout);
}

static void *be_busy(void *data)
{
	int (*get_attribute)(int *, int, int) = entry("cuDeviceGetAttribute");
	int (*synchronize)(void) = entry("cuCtxSynchronize");
	int (*set_current)(void *) = entry("cuCtxSetCurrent");
	int value;

	set_current(data);
	while (!stop) {
		get_attribute(&value, 1, 0);
		synchronize();
	}
	return NULL;
}

static void prepare(const char *before, pthread_t *ret_thread)
{
	void *context = NULL;

	if (!strcmp(before, "nothing"))
		return;
	int (*init)(unsigned) = entry("cuInit");
	int (*retain)(void **, int) = entry("cuDevicePrimaryCtxRetain");

	usleep(PAUSE_US);
	if (!strcmp(before, "lookup"))
		return;
	printf("result before: init %d\n", init(0));
	if (!strcmp(before, "init"))
		return;
	printf("result before: retain %d\n", retain(&context, 0));
	if (!strcmp(before, "busy"))
		pthread_create(ret_thread, NULL, be_busy, context);
}

static pid_t leave(const char *how)
{
	pid_t pid;

	if (!strcmp(how, "clone"))
		return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (strcmp(how, "vfork") != 0)
		return fork();
	pid = vfork();
	if (pid == 0) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(127);
	}
	return pid;
}

int main(int argc, char **argv)
{
	pthread_t thread = 0;
	int status = 0;
	pid_t pid;

	if (argc != 3) {
		fprintf(stderr,
			"usage: forked nothing|lookup|init|context|busy fork|clone|vfork|twice\n");
		return 2;
	}
	prepare(argv[1], &thread);
	fflush(stdout);
	pid = leave(argv[2]);
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		if (!strcmp(argv[2], "twice") && (pid = fork()) != 0) {
			waitpid(pid, &status, 0);
			_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
		}
		alarm(CHILD_SECONDS);
		use("child",
			strcmp(argv[2], "clone") ? DESCRIPTORS_AT_ONCE : DESCRIPTORS_AFTER_CALL);
		if (!strcmp(argv[2], "clone"))
			_exit(0); /* libc does not know of this child */
		exit(0);
	}
	waitpid(pid, &status, 0);
	printf("result child ended with %d\n", status);
	stop = 1;
	if (thread)
		pthread_join(thread, NULL);
	use("parent", DESCRIPTORS_UNSEEN);
	return 0;
}
